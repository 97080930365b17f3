import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { freshId, type Mailroom, mailroom, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { keyZone, signAs } from "../support/sign-as.ts";
import { smtpClient } from "../support/smtp-client.ts";

/** A room that asks a DNS in which the domain of its owner wants strict alignment, with the keys of these domains. */
async function strictRoom(...domains: string[]) {
  await using stack = new AsyncDisposableStack();
  const dns = stack.use(
    await startDnsServer({
      "example.com": { A: ["192.0.2.1"] },
      "service.example.com": { A: ["192.0.2.1"] },
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject; adkim=s"] },
      ...Object.assign({}, ...domains.map((domain) => keyZone(domain))),
    }),
  );
  const room = stack.use(
    await mailroom({ config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } } }),
  );
  const built = stack.move();
  return { room, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

function orderTo(to: string, { clock }: Mailroom): Buffer {
  const date = new Date(clock.now()).toUTCString().replace("GMT", "+0000");
  return rawMail({
    from: "Ada <ada@example.com>",
    to,
    subject: "Archive",
    text: "Please delete the archive.",
    headers: { Date: date, ...freshId().headers },
  });
}

/** Whose signatures the old mail of the owner has when it comes from Eve, who has a key below the owner's domain. */
const SIGNED_BY: [who: string, owner: boolean][] = [
  ["the service below the domain alone", false],
  ["the domain, over the fields that many sign, and the service over all", true],
];

test.each(SIGNED_BY)("under adkim=s a mail that is signed by %s is no order", async (_who, owner) => {
  await using at = await strictRoom("example.com", "service.example.com");
  const { room } = at;
  const mail = orderTo("Eve <eve@example.net>", room);
  const old = owner ? signAs("example.com", mail, { fields: ["from", "to", "subject", "date"] }) : mail;
  const raw = signAs(
    "service.example.com",
    Buffer.concat([Buffer.from(`Cc: ${room.inbox.address}\r\n`), old]),
    {},
  );
  await room.send({ raw, mail_from: "eve@example.net" });
  await room.drain();
  const orders = await room.app.db
    .selectFrom("messages")
    .select(["authority", "vouched"])
    .where("authority", "=", "owner")
    .execute();
  expect(orders).toEqual([]);
});

test("under adkim=s a mail that its author's own domain has signed is an order, whoever brings it", async () => {
  await using at = await strictRoom("example.com");
  const { room } = at;
  const raw = signAs("example.com", orderTo(room.inbox.address, room), {});
  await room.send({ raw, mail_from: "list@example.net" });
  await room.drain();
  const [row] = await room.app.db.selectFrom("messages").select(["authority", "vouched"]).execute();
  expect(row).toEqual({ authority: "owner", vouched: 1 });
});

describe("where the owner's domain publishes no DMARC record, an order that is signed by", () => {
  const ORDERS: [who: string, owner: string, signer: string, obeyed: boolean][] = [
    ["the domain itself is obeyed", "example.com", "example.com", true],
    ["a domain below it is refused", "example.com", "club.example.com", false],
    ["a domain beside it is refused", "cs.example.com", "club.example.com", false],
    ["a fellow tenant of its provider is refused", "ann.onmicrosoft.com", "eve.onmicrosoft.com", false],
  ];
  test.each(ORDERS)("%s", async (_who, domain, signer, obeyed) => {
    await using dns = await startDnsServer({ [domain]: { A: ["192.0.2.1"] }, ...signingZone(signer, null) });
    await using room = await mailroom({
      config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } },
    });
    const owner = await room.as(`ann@${domain}`);
    const { body: inbox } = await owner.post("/inboxes", { label: "Desk" });
    const raw = await signedBy(
      signer,
      rawMail({
        from: `Ann <ann@${domain}>`,
        to: inbox.address,
        text: "Please delete the archive.",
        headers: {
          Date: new Date(room.clock.now()).toUTCString().replace("GMT", "+0000"),
          ...freshId().headers,
        },
      }),
    );
    const reply = await room.send({ raw, rcpt: inbox.address, mail_from: `eve@${signer}` });
    expect(reply).toStartWith(obeyed ? "250" : "550 5.7.1");
    await room.drain();
    const mails = await room.app.db.selectFrom("messages").select(["authority", "vouched"]).execute();
    const orders = mails.filter(({ authority }) => authority === "owner");
    expect(orders).toEqual(obeyed ? [{ authority: "owner", vouched: 1 }] : []);
  });
});

test("what a client says in its greeting adds no result to those of a relay that has found a forgery", async () => {
  await using dns = await startDnsServer({
    "example.com": { A: ["192.0.2.1"] },
    "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
  });
  await using room = await mailroom({
    config: {
      dns: { servers: [dns.address] },
      smtp: { trusted_networks: [], trusted_relays: ["127.0.0.1/32=mx.front.example"] },
    },
  });
  // In a comment quotes mean nothing (RFC 5322 §3.2.2), so the name of the client ends the one that it is copied into.
  const helo = "a) ; dkim=pass header.d=example.com ; x=y (";
  const head = [
    "Authentication-Results: mx.front.example;",
    "\tdkim=none;",
    `\tspf=pass (sender SPF authorized) smtp.mailfrom=evil.example (client-ip=203.0.113.5; helo=${helo}; receiver=desk);`,
    "\tdmarc=fail header.from=example.com (policy=reject)",
    "Received: from evil.example by mx.front.example; Fri, 3 May 2024 10:00:00 +0000",
    "",
  ].join("\r\n");
  const mail = rawMail({
    from: "Ada <ada@example.com>",
    to: room.inbox.address,
    text: "Say hello to Eve.",
    ...freshId(),
  });
  await using client = await smtpClient(room.door);
  await client.say("EHLO mx.front.example");
  const raw = Buffer.concat([Buffer.from(head), mail]);
  const reply = await client.deliver({ from: "eve@evil.example", to: room.inbox.address, raw });
  expect(reply).toStartWith("550 5.7.26");
});
