import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";

import { createResolver } from "../../src/net/dns.ts";
import { composeReply } from "../../src/mail/writing/compose.ts";
import { written } from "../../src/mail/writing/written.ts";
import { type DkimKeys, dnsRecords, makeDkimKey, signMail } from "../../src/mail/writing/dkim.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { testKeys } from "../support/keys.ts";
import { dkimpyPasses, hasDkimpy, hasOpendkim, opendkimPasses } from "../support/verifiers.ts";
import { ownMs } from "../support/own-time.ts";

const DOMAIN = "mail.example";
const MESSAGE = [
  `From: "Box" <box@${DOMAIN}>`,
  "To: ann@example.org",
  "Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=",
  "References: <one@example.org>",
  " <two@example.org>",
  "Message-ID: <1.a@mail.example>",
  "Date: Tue, 14 Nov 2023 22:13:20 +0000",
  "MIME-Version: 1.0",
  "Content-Type: text/plain; charset=utf-8",
  "",
  "A line  with   gaps \t ",
  "",
  ".dot",
  " ",
  "",
  "",
].join("\r\n");

let keys: DkimKeys;
let dns: TestDnsServer;

beforeAll(async () => {
  keys = await testKeys();
  dns = await startDnsServer();
  for (const { name, value } of dnsRecords(keys, DOMAIN)) dns.set(name, "TXT", [value]);
});

afterAll(() => dns[Symbol.asyncDispose]());

describe("signatures", () => {
  test("of both keys pass at a verifier that asks the DNS for our records", async () => {
    expect(await verdicts(await signed(MESSAGE))).toEqual(["s1 rsa-sha256 pass", "e1 ed25519-sha256 pass"]);
  });

  test("pass for an empty body, a body of empty lines and one without a last line end", async () => {
    for (const body of ["", "\r\n", "\r\n\r\n \r\n", "no end", "x\r\n\r\n\r\n", "\t", " \t x \t \r\n y  "]) {
      const raw = MESSAGE.slice(0, MESSAGE.indexOf("\r\n\r\n") + 4) + body;
      expect(await verdicts(await signed(raw))).toEqual(["s1 rsa-sha256 pass", "e1 ed25519-sha256 pass"]);
    }
  });

  test("pass for a composed reply with attachments and letters beyond ASCII", async () => {
    const { raw } = await composeReply({
      from: { name: "Büro ✉", address: `box@${DOMAIN}` },
      to: "ann@example.org",
      envelope_from: "",
      subject: "Grüße",
      message_id: "1.a@mail.example",
      references: ["one@example.org", "two@example.org"],
      in_reply_to: "two@example.org",
      hop: 1,
      words: written("# Über\n\n" + "Zeile mit ä \n".repeat(200)),
      attachments: [{ filename: "ä.bin", content_type: "image/png", bytes: Buffer.alloc(70_000, 7) }],
      date: new Date(),
      kind: "reply",
    });
    expect(await verdicts(await signMail(raw, DOMAIN, keys))).toEqual([
      "s1 rsa-sha256 pass",
      "e1 ed25519-sha256 pass",
    ]);
  });

  test("leave the mail itself as it was, behind two fields of lines under 78 octets", async () => {
    const mail = (await signed(MESSAGE)).toString("latin1");
    expect(mail.endsWith(MESSAGE)).toBe(true);
    const front = mail.slice(0, -MESSAGE.length);
    expect(front.match(/^DKIM-Signature:/gm)).toHaveLength(2);
    expect(front.split("\r\n").every((line) => line.length < 78)).toBe(true);
    expect(front).not.toMatch(/[^\r]\n/);
  });

  test("are the same bytes when the same mail is signed again", async () => {
    expect(await signed(MESSAGE)).toEqual(await signed(MESSAGE));
  });

  test.each([
    "From: ceo@bank.example",
    "Subject: Pay now",
    "Reply-To: thief@example.net",
    "Content-Type: text/html",
  ])("break when somebody puts a second field in front: %s", async (field) => {
    const mail = await signed(MESSAGE);
    const forged = Buffer.concat([Buffer.from(`${field}\r\n`), mail]);
    expect(await verdicts(forged)).not.toContain("s1 rsa-sha256 pass");
    expect(await verdicts(forged)).not.toContain("e1 ed25519-sha256 pass");
  });

  test("break when one letter of the text or of a signed field changes", async () => {
    const mail = (await signed(MESSAGE)).toString("latin1");
    for (const forged of [mail.replace("gaps", "gabs"), mail.replace("To: ann", "To: bob")]) {
      expect(forged).not.toBe(mail);
      expect(await verdicts(Buffer.from(forged, "latin1"))).not.toContain("s1 rsa-sha256 pass");
    }
  });

  test("are made for an internationalised domain under its A-label", async () => {
    const domain = "büro.example";
    for (const { name, value } of dnsRecords(keys, domain)) {
      expect(name).toEndWith("._domainkey.xn--bro-hoa.example");
      dns.set(name, "TXT", [value]);
    }
    const raw = Buffer.from(MESSAGE.replace(`@${DOMAIN}>`, "@xn--bro-hoa.example>"));
    expect(await verdicts(await signMail(raw, domain, keys))).toContain("s1 rsa-sha256 pass");
  });

  test("are refused for a domain other than the one in From", async () => {
    const raw = Buffer.from(MESSAGE);
    expect(await failureOf(signMail(raw, "example.org", keys))).toMatch(
      '"mail.example" cannot be signed for "example.org"',
    );
    expect(await failureOf(signMail(raw, "sub.mail.example", keys))).toMatch("cannot be signed");
    const twoFroms = Buffer.from(`From: <x@${DOMAIN}>\r\n${MESSAGE}`);
    expect(await failureOf(signMail(twoFroms, DOMAIN, keys))).toMatch("cannot be signed");
    expect(await failureOf(signMail(Buffer.from("To: x@y.example\r\n\r\n"), "", keys))).toMatch(
      "cannot be signed",
    );
  });

  test("are refused for text without an end of its header section", async () => {
    expect(await failureOf(signMail(Buffer.from("From: a@mail.example\r\n"), DOMAIN, keys))).toMatch(
      "end of its header",
    );
  });

  test("take time that grows with the mail and no faster, whatever white space is in it", async () => {
    const head = MESSAGE.slice(0, MESSAGE.indexOf("\r\n\r\n") + 4);
    const started = ownMs();
    await signed(head + " ".repeat(1_000_000) + "x" + " \r\n".repeat(300_000));
    expect(ownMs() - started).toBeLessThan(2_000);
  });
});

describe("keys", () => {
  test("are published as 2048-bit RSA and as the bare 32 octets of Ed25519", () => {
    const [rsa, ed25519] = dnsRecords(keys, DOMAIN);
    expect(rsa?.name).toBe("s1._domainkey.mail.example");
    expect(rsa?.value).toMatch(/^v=DKIM1; k=rsa; p=MIIB/);
    expect(rsa?.value.length).toBeGreaterThan(380);
    expect(Buffer.from(ed25519?.value.replace("v=DKIM1; k=ed25519; p=", "") ?? "", "base64")).toHaveLength(
      32,
    );
  });

  test("are made without holding the event loop", async () => {
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    await makeDkimKey("rsa");
    clearInterval(count);
    expect(turns).toBeGreaterThan(3);
  });
});

describe("other people's verifiers", () => {
  if (!hasDkimpy) console.log("dkimpy is not tried: apt-get install python3-dkim python3-nacl");
  test.skipIf(!hasDkimpy)("dkimpy passes both signatures and refuses an altered mail", async () => {
    const mail = await signed(MESSAGE);
    expect(dkimpyPasses(mail, dnsRecords(keys, DOMAIN))).toEqual([true, true]);
    const altered = Buffer.from(mail.toString("latin1").replace("gaps", "gabs"), "latin1");
    expect(dkimpyPasses(altered, dnsRecords(keys, DOMAIN))).toEqual([false, false]);
  });

  if (!hasOpendkim) console.log("OpenDKIM is not tried: apt-get install libopendkim11");
  test.skipIf(!hasOpendkim)("OpenDKIM passes the RSA signature and refuses an altered mail", async () => {
    const mail = await signed(MESSAGE);
    expect(opendkimPasses(mail, dnsRecords(keys, DOMAIN))).toBe(true);
    const altered = Buffer.from(mail.toString("latin1").replace("gaps", "gabs"), "latin1");
    expect(opendkimPasses(altered, dnsRecords(keys, DOMAIN))).toBe(false);
  });
});

function signed(raw: string): Promise<Buffer> {
  return signMail(Buffer.from(raw, "latin1"), DOMAIN, keys);
}

async function verdicts(mail: Buffer): Promise<string[]> {
  const resolver = createResolver({ servers: [dns.address] });
  const { results } = await dkimVerify(mail, { resolver: resolver as never, strict: true });
  return results.map(({ selector, algo, status }) => `${selector} ${algo} ${status.result}`);
}

/** The message a promise was rejected with; empty when it was not. */
function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
