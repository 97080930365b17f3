import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { sealMessage } from "mailauth";
import type { MessageRow } from "../../src/db/schema.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { keyZone, OVERSIGNED, signAs } from "../support/sign-as.ts";
import { smtpClient } from "../support/smtp-client.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const SEALING_KEY = `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const RELAY = { smtp: { trusted_relays: ["127.0.0.1/32=mx.front.example"] } };
const SEALER = { smtp: { arc_sealers: ["list.example"] } };
/** What a careless domain signs. */
const FEW = ["from", "date", "message-id"];
const STANDING = /^Read the material below/;
/** Everybody on this machine may send for the domain, as on a server that many share. */
const SHARED = {
  "example.com": { A: ["192.0.2.1"], TXT: ["v=spf1 ip4:127.0.0.0/8 -all"] },
  ...keyZone("example.com"),
};

let without: TestDnsServer;
let published: TestDnsServer;

beforeAll(async () => {
  const zone = { ...SHARED, "s._domainkey.list.example": { TXT: [SEALING_KEY] } };
  without = await startDnsServer(zone);
  published = await startDnsServer({ ...zone, "_dmarc.example.com": { TXT: ["v=DMARC1; p=none"] } });
});
afterAll(async () => {
  await without[Symbol.asyncDispose]();
  await published[Symbol.asyncDispose]();
});

function room(
  dns: TestDnsServer,
  { smtp = {} }: { smtp?: Record<string, string[]> } = {},
): Promise<Mailroom> {
  return mailroom({ config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [], ...smtp } } });
}

interface Parts {
  to?: string;
  fields?: string[];
  more?: string[];
  /** More tags of the signature. */
  tags?: string;
}

/** A mail of the owner, of which her domain has signed these fields. */
function written(
  { inbox, clock }: Mailroom,
  { to = inbox.address, fields = OVERSIGNED, more = [], tags = "" }: Parts = {},
): Buffer {
  const head = [
    "From: ada@example.com",
    ...(to === "" ? [] : [`To: ${to}`]),
    "Subject: Hello",
    `Date: ${new Date(clock.now()).toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${Bun.randomUUIDv7()}@example.com>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: 7bit",
    ...more,
  ];
  return signAs("example.com", Buffer.from([...head, "", "Say hello.", ""].join("\r\n")), {
    fields,
    more: tags,
  });
}

function inFront(raw: Buffer, ...fields: string[]): Buffer {
  return Buffer.concat([Buffer.from(fields.map((field) => `${field}\r\n`).join("")), raw]);
}

/** What became of a mail with this envelope sender, and what the model was asked. */
async function sent(
  t: Mailroom,
  raw: Buffer,
  mail_from = "ada@example.com",
): Promise<MessageRow & { asked: string }> {
  await using client = await smtpClient(t.door);
  await client.say("EHLO client.example");
  expect(await client.deliver({ from: mail_from, to: t.inbox.address, raw })).toStartWith("250");
  await t.drain();
  const body = t.model.requests.at(-1)?.body;
  return { ...(await t.newest()), asked: body?.messages.at(-1)?.content ?? "" };
}

const OBEYED = { authority: "owner", vouched: 1, asked: expect.stringMatching(/^Say hello/) };
const READ = { authority: "stranger", vouched: 0, asked: expect.stringMatching(STANDING) };
const PUBLISH = "Publish a DMARC record for the domain";

describe("a signature", () => {
  test("by a key in testing mode has a mail read and not obeyed", async () => {
    const key = Object.entries(keyZone("example.com")).map(([name, record]) => {
      const { TXT = [] } = record as { TXT?: string[] };
      return [name, { TXT: TXT.map((text) => text.replace("k=rsa;", "k=rsa; t=y;")) }];
    });
    await using dns = await startDnsServer({
      ...SHARED,
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
      ...Object.fromEntries(key),
    });
    await using t = await room(dns);
    const mail = await sent(t, written(t), "list@example.net");
    expect(mail).toMatchObject(READ);
    expect(mail.steps).toContain("t=y");
    // What comes straight from the author's server rests on no signature.
    expect(await sent(t, written(t))).toMatchObject(OBEYED);
  });

  test.each([
    ["i=eve@example.com;", READ],
    ["i=e=76e@example.com;", READ],
    ["i=ada@example.com;", OBEYED],
    ["i=Ada+desk@example.com;", OBEYED],
    ["i=@example.com;", OBEYED],
    ["i=token-17@mail.example.com;", OBEYED],
  ])("for %s has a mail read as that shows", async (tags, read) => {
    await using t = await room(published);
    for (const mail_from of ["ada@example.com", "list@example.net"]) {
      const mail = await sent(t, written(t, { tags }), mail_from);
      expect(mail).toMatchObject(read);
      if (read === READ) expect(mail.steps).toContain("or its signature (`i=`), names an address");
    }
  });
});

describe("a mail from a server that many may share", () => {
  test("is not read beyond its signature where the domain has no DMARC record, and it says what would mend that", async () => {
    await using t = await room(without);
    const mail = await sent(t, written(t, { fields: FEW }));
    expect(mail).toMatchObject(READ);
    expect(mail.steps).toContain(PUBLISH);
    const [answer] = await t.outgoing();
    expect(
      Buffer.from(answer?.raw ?? [])
        .toString()
        .replaceAll("=\r\n", ""),
    ).toContain(PUBLISH);
  });

  test("is obeyed there by a signature over all of it, as mail that comes by others is", async () => {
    await using t = await room(without);
    const raw = written(t);
    expect(await sent(t, raw)).toMatchObject(OBEYED);
    const again = await sent(t, raw);
    expect(again).toMatchObject({ duplicates: 1 });
    expect(t.model.requests).toHaveLength(1);
    const fields = OVERSIGNED.filter((name) => name !== "reply-to");
    const added = await sent(t, inFront(written(t, { fields }), "Reply-To: eve@example.net"));
    expect(added).toMatchObject(READ);
  });

  test("is not told to publish a record where somebody else sends it", async () => {
    await using t = await room(without);
    const mail = await sent(t, written(t, { fields: FEW }), "eve@example.net");
    expect(mail).toMatchObject(READ);
    expect(mail.steps).not.toContain(PUBLISH);
  });

  test("is the author's as a whole where the domain has a record", async () => {
    await using t = await room(published);
    expect(await sent(t, written(t, { fields: FEW }))).toMatchObject(OBEYED);
  });

  test.each([[""], ["Eve <eve@example.com>"], ["undisclosed-recipients:;"]])(
    "is none of hers to this inbox where To (%p) does not name it, and says what to do",
    async (to) => {
      await using t = await room(published);
      const mail = await sent(t, written(t, { fields: FEW, to }));
      expect(mail).toMatchObject(READ);
      expect(mail.steps).toContain("neither To nor Cc names the address of this inbox");
      const named = written(t, { fields: FEW, to, more: [`Cc: ${t.inbox.address}`] });
      expect(await sent(t, named)).toMatchObject(OBEYED);
    },
  );
});

describe("the word of a trusted relay", () => {
  const results = (...found: string[]) => [
    `Authentication-Results: mx.front.example; ${found.join("; ")}`,
    "Received: from client by mx.front.example; Thu, 1 Jan 2026 00:00:00 +0000",
  ];
  const SPF = "spf=pass smtp.mailfrom=ada@example.com";
  const DKIM = "dkim=pass header.d=example.com";

  test.each<[string, string[], Parts, object]>([
    ["SPF and DKIM", [SPF, DKIM], { fields: FEW }, READ],
    ["SPF and DKIM, all of it signed", [SPF, DKIM], {}, OBEYED],
  ])("without a DMARC record: %s", async (_what, found, parts, outcome) => {
    await using t = await room(without, RELAY);
    expect(await sent(t, inFront(written(t, parts), ...results(...found)))).toMatchObject(outcome);
  });

  test.each<[string, string[], object]>([
    ["SPF", [SPF], OBEYED],
    ["SPF and DKIM", [SPF, DKIM], OBEYED],
    ["DKIM", [DKIM], READ],
  ])("with one: %s", async (_what, found, outcome) => {
    await using t = await room(published, RELAY);
    expect(await sent(t, inFront(written(t, { fields: FEW }), ...results(...found)))).toMatchObject(outcome);
  });
});

describe("a seal over a mail that was changed before", () => {
  async function sealed(raw: Buffer, found: string): Promise<Buffer> {
    const changed = Buffer.concat([raw, Buffer.from("-- \r\nThe list\r\n")]);
    const key = {
      signingDomain: "list.example",
      selector: "s",
      privateKey: privateKey.export({ type: "pkcs8", format: "pem" }),
    };
    const seal = await sealMessage(changed, { ...key, authResults: `mx.list.example; ${found}`, cv: "none" });
    return Buffer.concat([seal, changed]);
  }
  const SPF = "spf=pass smtp.mailfrom=ada@example.com";
  const DKIM = "dkim=pass header.d=example.com";

  test.each<[string, string, object]>([
    ["the author's server", SPF, OBEYED],
    ["the author's server and a signature", `${DKIM}; ${SPF}`, OBEYED],
    ["the author's server, for a neighbour", "spf=pass smtp.mailfrom=mallory@example.com", READ],
    ["the author's server, by its domain alone", "spf=pass smtp.mailfrom=example.com", READ],
    ["only a signature, of whatever it was", DKIM, READ],
    ["a signature, and somebody else's server", `${DKIM}; spf=pass smtp.mailfrom=eve@example.net`, READ],
  ])("that saw %s", async (_what, found, outcome) => {
    await using t = await room(published, SEALER);
    expect(await sent(t, await sealed(written(t), found), "list@list.example")).toMatchObject(outcome);
  });

  test("proves no order without a DMARC record", async () => {
    await using t = await room(without, SEALER);
    expect(await sent(t, await sealed(written(t), `${DKIM}; ${SPF}`), "list@list.example")).toMatchObject(
      READ,
    );
  });
});
