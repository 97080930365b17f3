import { describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import { simpleParser } from "mailparser";
import { createResolver } from "../../src/net/dns.ts";
import { dnsRecords } from "../../src/mail/writing/dkim.ts";
import { serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { addressIn, mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";

const MARKDOWN = "# Done\n\nIt is **ready**, see [here](https://example.net/a).\n\n<script>alert(1)</script>";
const ASK: RoomMail = {
  subject: "AW: Re: The plan",
  text: "Do it.",
  headers: {
    "Message-ID": "<ask@example.com>",
    References: "<root@example.com> <middle@example.com>",
    "In-Reply-To": "<middle@example.com>",
  },
};

describe("the reply", () => {
  test("carries the answer as text and as HTML without anything active", async () => {
    await using room = await mailroom({ model: { reply: () => MARKDOWN } });
    const { parsed } = await answer(room, ASK);
    expect(parsed.text).toContain("It is ready");
    expect(parsed.text).toContain("-- \nSent by AI on behalf of Desk");
    expect(parsed.html).toMatch(/<h1 [^<>]*>Done<\/h1>/);
    expect(parsed.html).toContain("<strong>ready</strong>");
    expect(parsed.html).not.toContain("<script");
    expect(parsed.headers.get("content-type")).toMatchObject({ value: "multipart/alternative" });
  });

  test("goes from the inbox to the sender alone, with a token and a bounce address to come back by", async () => {
    await using room = await mailroom();
    const { parsed, row } = await answer(room, {
      ...ASK,
      headers: { ...ASK.headers, Cc: "carl@example.org" },
    });
    const [local, domain] = room.inbox.address.split("@");
    expect(parsed.from?.value).toEqual([{ name: "Desk", address: room.inbox.address }]);
    expect(parsed.to).toMatchObject({ value: [{ address: "ada@example.com" }] });
    expect(parsed.cc).toBeUndefined();
    expect(parsed.replyTo?.value[0]?.address).toMatch(new RegExp(`^${local}\\+c_[a-z2-7]{16,20}@${domain}$`));
    expect(row.envelope_to).toBe("ada@example.com");
    expect(row.envelope_from).toMatch(/^b\+[a-z0-9]+@mw\.test$/);
  });

  test("stands in the thread of the mail it answers and says that a machine wrote it", async () => {
    await using room = await mailroom();
    const { parsed, row } = await answer(room, ASK);
    const { headers } = parsed;
    expect(parsed.subject).toBe("Re: The plan");
    expect(parsed.inReplyTo).toBe("<ask@example.com>");
    expect(parsed.references).toEqual(["<root@example.com>", "<middle@example.com>", "<ask@example.com>"]);
    expect(parsed.messageId).toBe(`<${row.rfc_message_id}>`);
    expect(row.rfc_message_id).toMatch(/^[0-9a-f-]{36}\.[a-z2-7]{8}@mw\.test$/);
    expect(headers.get("auto-submitted")).toBe("auto-replied");
    expect(headers.get("x-auto-response-suppress")).toBe("All");
    expect(headers.get("x-mailwright-hop")).toBe("1");
    expect(parsed.date?.getTime()).toBe(room.clock.now());
    expect(headers.has("precedence")).toBe(false);
  });

  test("is signed by both keys, so that a receiver who asks the DNS believes it", async () => {
    await using room = await mailroom();
    const { row } = await answer(room, { ...ASK, subject: "Grüße ✉" });
    await using dns = await startDnsServer();
    for (const { name, value } of dnsRecords(await serviceKeys(room.app), "mw.test"))
      dns.set(name, "TXT", [value]);
    const resolver = createResolver({ servers: [dns.address] }) as DNSResolver;
    const { results } = await dkimVerify(Buffer.from(row.raw ?? []), { resolver, sender: row.envelope_from });
    expect(
      results.map(({ status, signingDomain, selector }) => [status.result, signingDomain, selector]),
    ).toEqual([
      ["pass", "mw.test", "s1"],
      ["pass", "mw.test", "e1"],
    ]);
  });

  test("counts one hop more than the mail it answers", async () => {
    await using room = await mailroom();
    const { parsed } = await answer(room, { headers: { "X-Mailwright-Hop": "3" } });
    expect(parsed.headers.get("x-mailwright-hop")).toBe("4");
  });

  test("is not written where the inbox does not reply", async () => {
    await using room = await mailroom({ inbox: { reply_enabled: false } });
    await room.send(ASK);
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "none", credits_charged: 1 },
    ]);
    expect(await room.outgoing()).toEqual([]);
  });

  test("cannot have a header put into it by a subject", async () => {
    await using room = await mailroom();
    const subject = `=?utf-8?B?${Buffer.from("Hi\r\nBcc: eve@example.net").toString("base64")}?=`;
    const { parsed, row } = await answer(room, { ...ASK, subject });
    expect(parsed.bcc).toBeUndefined();
    expect(parsed.subject).toStartWith("Re: Hi");
    expect(row.envelope_to).toBe("ada@example.com");
  });
});

const ADA = "Ada <ada@example.com>";
const LEA = "Lea <lea@example.org>";
const BOB = "Bob <bob@example.net>";
/** The list names two people, a domain, the subdomains of one, and all who have an address at a public provider. */
const LISTED = [
  "lea@example.org",
  "max@example.org",
  "ada@example.net",
  "@list.example",
  "@*.units.example",
  "@gmail.com",
  "@outlook.com",
  "max@gmail.com",
];

const ANSWERED: [claim: string, from: string, reply_to: string, to: string][] = [
  ["of the owner goes to a listed address", ADA, "Max <max@example.org>", "max@example.org"],
  ["of the owner goes to a listed address in capitals", ADA, "<MAX@Example.ORG>", "max@example.org"],
  ["of the owner goes to an address of a listed domain", ADA, "team@list.example", "team@list.example"],
  ["of the owner goes to a listed address at a public provider", ADA, "max@gmail.com", "max@gmail.com"],
  ["of the owner goes to one of a listed subdomain", ADA, "a@x.units.example", "a@x.units.example"],
  ["of the owner goes to her own address", ADA, "ADA@example.com", "ada@example.com"],
  ["of a listed sender goes to another listed address", LEA, "max@example.org", "max@example.org"],
  ["of a listed sender goes to the owner", LEA, "Ada@Example.com", "ada@example.com"],
  [
    "of a sender of a listed domain goes to another of it",
    "a@list.example",
    "b@list.example",
    "b@list.example",
  ],
];
test.each(ANSWERED)("the answer to a mail %s", async (_claim, from, reply_to, to) => {
  await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
  const { row, parsed } = await answer(room, { from, headers: { "Reply-To": reply_to } });
  expect(row.envelope_to).toBe(to);
  expect(parsed.to).toMatchObject({ value: [{ address: to }] });
});

const NOT_ANSWERED: [what: string, reply_to: string][] = [
  ["an address of nobody", "eve@example.net"],
  ["another address of her domain", "team@example.com"],
  ["an address of a subdomain of hers", "team@eu.example.com"],
  ["another address of a listed one's domain", "eve@example.org"],
  ["a sub-address of hers", "ada+x@example.com"],
  ["a sub-address of a listed one", "max+x@example.org"],
  ["the domain whose subdomains are listed", "a@units.example"],
  ["a subdomain of a listed domain", "a@x.list.example"],
  ["a domain that ends with a listed one", "a@evillist.example"],
  ["a listed address in front of another domain", "max@example.org.eve.example"],
  ["a domain of look-alike letters", "max@ex\u0430mple.org"],
  ["a local part of look-alike letters", "m\u0430x@example.org"],
  ["anybody at a public provider that is listed", "eve@gmail.com"],
  ["anybody at another one", "eve@outlook.com"],
  ["two addresses", "lea@example.org, max@example.org"],
  ["two addresses, the second of them hers", "eve@example.net, ada@example.com"],
  ["a group", "Team: max@example.org;"],
  ["an empty group", "undisclosed-recipients:;"],
  ["another address with a listed one as its name", '"max@example.org" <eve@example.net>'],
  ["another address with a listed one as its comment", "eve@example.net (max@example.org)"],
  ["a listed address and another one in brackets", "max@example.org <eve@example.net>"],
  ["a route over a listed host", "<@list.example:eve@example.net>"],
  ["a quoted local part", '"max@example.org"@example.net'],
  ["an encoded word", "=?utf-8?q?max=40example.org?="],
  ["an address of a host number", "max@[192.0.2.1]"],
  ["nothing that can be read", "<<nonsense"],
  ["nothing", ""],
];
test.each(NOT_ANSWERED)(
  "the answer to a mail with %s in Reply-To goes to From alone",
  async (_what, reply_to) => {
    await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
    const { row, parsed } = await answer(room, { from: ADA, headers: { "Reply-To": reply_to } });
    expect(row.envelope_to).toBe("ada@example.com");
    expect(parsed.to).toMatchObject({ value: [{ address: "ada@example.com" }] });
  },
);

test.each([
  ["of the same domain", BOB, "desk@example.net"],
  ["of the same public provider", "Bob <bob@gmail.com>", "eve@gmail.com"],
  ["of the owner", BOB, "ada@example.com"],
  ["of the inbox", BOB, "$inbox"],
])(
  "the answer to a stranger goes to From alone, though Reply-To is an address %s",
  async (_of, from, reply_to) => {
    await using room = await mailroom();
    const { row } = await answer(room, {
      from,
      headers: { "Reply-To": reply_to.replace("$inbox", room.inbox.address) },
    });
    expect(row.envelope_to).toBe(addressIn(from));
  },
);

test("the answer to one of a public provider that is listed goes to From alone, not to another one there", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["@gmail.com"] } });
  const { row } = await answer(room, { from: "a@gmail.com", headers: { "Reply-To": "b@gmail.com" } });
  expect(row.envelope_to).toBe("a@gmail.com");
});

test("the address of an owner who has not proven it is no Reply-To of a listed sender", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
  await room.app.db.updateTable("users").set({ email_verified: 0 }).execute();
  const { row } = await answer(room, { from: LEA, headers: { "Reply-To": "ada@example.com" } });
  expect(row.envelope_to).toBe("lea@example.org");
});

/** Sends a mail, lets it be worked on, and reads the one answer to it. */
async function answer(room: Mailroom, mail: RoomMail) {
  expect(await room.send(mail)).toStartWith("250 ");
  await room.drain();
  const [row, ...others] = await room.outgoing();
  if (!row?.raw || others.length > 0) throw new Error("Not exactly one answer");
  expect(row).toMatchObject({ kind: "reply", status: "sent" });
  return { row, parsed: await simpleParser(Buffer.from(row.raw)) };
}
