import { describe, expect, test } from "bun:test";
import { createHash, sign } from "node:crypto";
import * as fc from "fast-check";
import { dkimVerify } from "mailauth";
import { inNetworks } from "../../src/net/networks.ts";
import { fromMailbox, readHeaders } from "../../src/mail/reading/headers.ts";
import { startDnsServer } from "../support/dns-server.ts";
import {
  by,
  CASES,
  identify,
  KEY,
  type Mail,
  publish,
  rsa,
  SPF,
  writeMail,
} from "../support/identity-cases.ts";
import { watchThread } from "../support/own-time.ts";

const PATIENT = { max_wait_ms: 30_000, dns_ms: 30_000 };

describe("sender identity", () => {
  for (const row of CASES) {
    test(row.claim, async () => {
      await using dns = await startDnsServer(row.zone);
      row.during?.(dns);
      const identity = await identify(await writeMail(row), row, dns);
      const { authenticated, reject, temporary, ...auth } = row.expect;
      expect(identity.auth).toMatchObject(auth);
      expect(identity.authenticated).toBe(authenticated);
      expect(identity.dmarc_reject).toBe(reject ?? false);
      expect(identity.problem).toBe(temporary ? "temporary" : undefined);
    });
  }

  test("reads a signing key of more than 255 octets that comes in two strings", async () => {
    expect(KEY.length).toBeGreaterThan(255);
    await using dns = await startDnsServer({
      "s._domainkey.example.com": { TXT: [[KEY.slice(0, 255), KEY.slice(255)]] },
    });
    const mail = { signed: [by("example.com")] };
    expect((await identify(await writeMail(mail), mail, dns)).authenticated).toBe(true);
  });

  test("does not count a signature that leaves From unsigned", async () => {
    await using dns = await startDnsServer(publish("example.com", { key: KEY }));
    const unsigned = await writeMail({});
    const cover = (fields: string[]) => signByHand(unsigned, "example.com", fields);
    expect((await identify(cover(["from", "subject"]), {}, dns)).authenticated).toBe(true);
    const identity = await identify(cover(["subject", "date"]), {}, dns);
    expect(identity).toMatchObject({ authenticated: false, auth: { dkim: "neutral", aligned: false } });
  });

  test("never authenticates a mail with two From fields", async () => {
    await using dns = await startDnsServer(
      publish("example.com", { key: KEY, spf: SPF, dmarc: "v=DMARC1; p=none" }),
    );
    const mail: Mail = { signed: [by("example.com")], mail_from: "ann@example.com" };
    for (const second of [
      "From: boss@other.test\r\n",
      "From : boss@other.test\r\n",
      "From\r\n : boss@other.test\r\n",
    ]) {
      const raw = Buffer.concat([Buffer.from(second), await writeMail(mail)]);
      expect(fromMailbox(readHeaders(raw)).ok).toBe(false);
      expect((await identify(raw, mail, dns)).authenticated).toBe(false);
    }
  });

  test("never counts fewer From fields than the signature check does", async () => {
    const parts = fc.constantFrom(
      "From",
      "from ",
      "To",
      "X",
      ":",
      " ",
      "\t",
      "\r\n",
      "\n",
      "\r",
      "\u00a0",
      "a@b.test",
      "\0",
    );
    const property = fc.asyncProperty(fc.array(parts, { maxLength: 30 }), async (texts) => {
      const raw = Buffer.from(texts.join(""));
      const { fromFields } = await dkimVerify(raw, { strict: true });
      expect(readHeaders(raw).all("from").length).toBeGreaterThanOrEqual(fromFields);
    });
    await fc.assert(property, { numRuns: 1_000 });
  });

  test("does not verify signatures over two hundred names, or under a header that is too large", async () => {
    await using dns = await startDnsServer(publish("example.com", { key: KEY }));
    const many = signByHand(await writeMail({}), "example.com", ["from", ...Array<string>(200).fill("to")]);
    expect((await identify(many, {}, dns)).auth.dkim).toBe("policy");
    const large: Mail = {
      signed: [by("example.com")],
      change: (raw) => `X: ${"x".repeat(70_000)}\r\n${raw}`,
    };
    expect((await identify(await writeMail(large), {}, dns)).authenticated).toBe(false);
    expect(dns.queries.filter((query) => query.name.includes("_domainkey"))).toEqual([]);
  });

  test("does not verify bodies with a line of more than a megabyte", async () => {
    await using dns = await startDnsServer(publish("example.com", { key: KEY }));
    const mail = (length: number): Mail => ({ signed: [by("example.com")], body: "x".repeat(length) });
    expect((await identify(await writeMail(mail(1_000_000)), {}, dns)).auth.dkim).toBe("pass");
    expect((await identify(await writeMail(mail(1_100_000)), {}, dns)).auth.dkim).toBe("policy");
  });

  test("gives up as temporary when the whole takes too long", async () => {
    await using dns = await startDnsServer();
    dns.fault("*", "drop");
    const identity = await identify(await writeMail({ signed: [by("example.com")] }), {}, dns, {
      max_wait_ms: 50,
    });
    expect(identity).toMatchObject({ authenticated: false, problem: "temporary", dmarc_reject: false });
  });

  test("looks at no more than ten signatures", async () => {
    await using dns = await startDnsServer();
    const raw = await writeMail({ signed: Array.from({ length: 15 }, (_, i) => by(`d${i}.test`)) });
    await identify(raw, {}, dns);
    const asked = dns.queries.map(({ name }) => name).filter((name) => name.includes("_domainkey"));
    // A question may be put twice where the answer is slow.
    expect(new Set(asked).size).toBe(10);
  });

  test("keeps the event loop free while it reads 25 MB and hostile bodies", async () => {
    await using dns = await startDnsServer(publish("example.com", { key: KEY }));
    const bodies = ["A".repeat(76).concat("\r\n").repeat(320_000), " ", "\n", "x\n", " \r\n", "\t"];
    for (const body of bodies) {
      const filled = body.length > 100 ? body : body.repeat(Math.ceil(1_000_000 / body.length));
      const raw = await writeMail({ body: filled, signed: [by("example.com")] });
      const watch = watchThread();
      // The DNS server is in this process, which has 25 MB to read meanwhile.
      expect((await identify(raw, {}, dns, PATIENT)).auth.dkim).toBe("pass");
      // The goal is 50 ms; the margin is for slow machines, and for garbage that is collected meanwhile.
      expect(watch.longestMs()).toBeLessThan(250);
    }
  }, 60_000);
});

describe("trusted networks", () => {
  test("hold the addresses inside them, v4-mapped ones too, and no others", () => {
    const networks = ["192.0.2.0/24", "::1/128", "2001:db8::5", "10.0.0.1"];
    for (const address of ["192.0.2.200", "::ffff:192.0.2.1", "::1", "2001:db8::5", "10.0.0.1"]) {
      expect(inNetworks(address, networks)).toBe(true);
    }
    for (const address of ["192.0.3.1", "::2", "127.0.0.1", "10.0.0.2", "", "nonsense", "2001:db8::6"]) {
      expect(inNetworks(address, networks)).toBe(false);
    }
  });

  test("are not asked for the zone of an address, whatever it is called", () => {
    for (const zone of ["eth0", "eth0.100", "a-b", ":"])
      expect([inNetworks(`fe80::1%${zone}`, ["fe80::/10"]), inNetworks(`fe80::1%${zone}`, ["::1"])]).toEqual([
        true,
        false,
      ]);
  });

  test("are empty by default and never hold loopback by themselves", () => {
    expect(inNetworks("127.0.0.1", [])).toBe(false);
    expect(inNetworks("::ffff:127.0.0.1", ["::/0"])).toBe(false);
    expect(inNetworks("127.0.0.1", ["nonsense", "1.2.3.4/99"])).toBe(false);
  });
});

/** A relaxed/relaxed signature over just these fields, which an honest signer refuses to make. */
function signByHand(raw: Buffer, domain: string, fields: string[]): Buffer {
  const [head = "", body = ""] = raw.toString().split("\r\n\r\n");
  const lines = fields.map((name) => {
    const line = head.split("\r\n").find((text) => text.toLowerCase().startsWith(`${name}:`)) ?? "";
    return `${name}:${line.slice(name.length + 1).trim()}\r\n`;
  });
  const bh = createHash("sha256").update(body).digest("base64");
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; s=s; h=${fields.join(":")}; bh=${bh}; b=`;
  const b = sign("sha256", Buffer.from(`${lines.join("")}dkim-signature:${tags}`), rsa.privateKey);
  return Buffer.concat([Buffer.from(`DKIM-Signature: ${tags}${b.toString("base64")}\r\n`), raw]);
}
