import { describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import { simpleParser } from "mailparser";
import { createResolver } from "../../src/lib/dns.ts";
import { dnsRecords } from "../../src/mail/dkim.ts";
import { serviceKeys } from "../../src/mail/dkim-keys.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";

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
    expect(parsed.text).toContain("It is **ready**");
    expect(parsed.text).toContain("-- \nSent by AI on behalf of Desk");
    expect(parsed.html).toContain("<h1>Done</h1>");
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

const REPLY_TO: [claim: string, reply_to: string, to: string][] = [
  ["goes to Reply-To in the sender's own domain", "Team <team@example.com>", "team@example.com"],
  ["goes to Reply-To in a subdomain of it", "team@eu.example.com", "team@eu.example.com"],
  ["goes to Reply-To of a listed address", "bob@example.org", "bob@example.org"],
  ["goes to From where Reply-To is somebody else's", "eve@example.net", "ada@example.com"],
  ["goes to From where Reply-To holds two addresses", "a@example.com, b@example.com", "ada@example.com"],
  ["goes to From where Reply-To cannot be read", "<<nonsense", "ada@example.com"],
];
test.each(REPLY_TO)("a reply %s", async (_claim, reply_to, to) => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
  const { row, parsed } = await answer(room, { headers: { "Reply-To": reply_to } });
  expect(row.envelope_to).toBe(to);
  expect(parsed.to).toMatchObject({ value: [{ address: to }] });
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
