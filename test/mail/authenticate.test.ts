import { describe, expect, test } from "bun:test";
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import * as fc from "fast-check";
import { type DKIMSignOptions, dkimSign, dkimVerify } from "mailauth";
import { createResolver } from "../../src/lib/dns.ts";
import { authenticateSender, type Identity } from "../../src/mail/authenticate.ts";
import { inNetworks } from "../../src/lib/networks.ts";
import { fromMailbox, readHeaders } from "../../src/mail/headers.ts";
import { type DnsZone, startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { watchThread } from "../support/own-time.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ed25519 = generateKeyPairSync("ed25519");
const weak = generateKeyPairSync("rsa", { modulusLength: 512 });

const KEY = `v=DKIM1; k=rsa; p=${rsa.publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const WEAK_KEY = `v=DKIM1; k=rsa; p=${weak.publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const ED_KEY = `v=DKIM1; k=ed25519; p=${ed25519.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64")}`;

const CLIENT = "192.0.2.10";
const DAY_MS = 86_400_000;

interface Mail {
  from?: string;
  body?: string;
  extra?: string;
  mail_from?: string;
  helo?: string;
  remote_address?: string;
  /** Each signs the mail as the one before left it. */
  signed?: (Partial<DKIMSignOptions> & { signingDomain: string })[];
  /** Changes the signed mail on its way. */
  change?: (raw: string) => string;
}

interface Case extends Mail {
  claim: string;
  zone: DnsZone;
  expect: Partial<Identity["auth"]> & { authenticated: boolean; reject?: boolean; temporary?: boolean };
  during?: (dns: TestDnsServer) => void;
}

const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" });
const from = (domain: string) => `Ann <ann@${domain}>`;

/** What a domain publishes: its signing key, SPF for CLIENT, and a DMARC record. */
const publish = (domain: string, records: { key?: string; spf?: string; dmarc?: string }): DnsZone => ({
  [domain]: { A: ["192.0.2.1"], ...(records.spf && { TXT: [records.spf] }) },
  ...(records.key && { [`s._domainkey.${domain}`]: { TXT: [records.key] } }),
  ...(records.dmarc && { [`_dmarc.${domain}`]: { TXT: [records.dmarc] } }),
});

const SPF = `v=spf1 ip4:${CLIENT} -all`;
const by = (signingDomain: string, more: Partial<DKIMSignOptions> = {}) => ({ signingDomain, ...more });

const CASES: Case[] = [
  {
    claim: "believes an aligned signature under a DMARC record",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dkim: "pass", dmarc: "pass", spf: "none", aligned: true },
  },
  {
    claim: "believes an aligned signature where no DMARC record is published",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com")],
    expect: { authenticated: true, dkim: "pass", dmarc: "none", aligned: true },
  },
  {
    claim: "believes an Ed25519 signature",
    zone: publish("example.com", { key: ED_KEY }),
    signed: [by("example.com", { privateKey: pem(ed25519.privateKey) })],
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "believes simple canonicalization",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { canonicalization: "simple/simple" })],
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "believes a signature whose mail arrives with bare line feeds",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com")],
    change: (raw) => raw.replaceAll("\r\n", "\n"),
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "believes a subdomain's signature under relaxed alignment",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=none" }),
      ...publish("m.example.com", { key: KEY }),
    },
    signed: [by("m.example.com")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "believes the parent's signature for a subdomain's mail",
    from: from("m.example.com"),
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "refuses a subdomain's signature under strict alignment (adkim=s)",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=none; adkim=s" }),
      ...publish("m.example.com", { key: KEY }),
    },
    signed: [by("m.example.com")],
    expect: { authenticated: false, dkim: "pass", dmarc: "fail", aligned: false, reject: false },
  },
  {
    claim: "believes the very domain's signature under strict alignment",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject; adkim=s" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "refuses a forged From with the valid signature of another domain",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { key: KEY, spf: SPF }),
    },
    mail_from: "x@evil.test",
    signed: [by("evil.test")],
    expect: { authenticated: false, dkim: "pass", spf: "pass", dmarc: "fail", aligned: false, reject: true },
  },
  {
    claim: "refuses another domain's valid signature where no DMARC record is published",
    zone: { ...publish("example.com", {}), ...publish("evil.test", { key: KEY, spf: SPF }) },
    mail_from: "x@evil.test",
    signed: [by("evil.test")],
    expect: { authenticated: false, dkim: "pass", dmarc: "none", aligned: false, reject: false },
  },
  {
    claim: "refuses a domain that only ends like the author's",
    zone: { ...publish("example.com", {}), ...publish("notexample.com", { key: KEY }) },
    signed: [by("notexample.com")],
    expect: { authenticated: false, dkim: "pass", aligned: false },
  },
  {
    claim: "believes aligned SPF under a DMARC record",
    zone: publish("example.com", { spf: SPF, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "bounce@example.com",
    expect: { authenticated: true, spf: "pass", dkim: "none", dmarc: "pass", aligned: true },
  },
  {
    claim: "does not believe aligned SPF without a DMARC record",
    zone: publish("example.com", { spf: SPF }),
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "pass", dmarc: "none", aligned: true, reject: false },
  },
  {
    claim: "refuses SPF of a subdomain under strict alignment (aspf=s)",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=quarantine; aspf=s" }),
      ...publish("m.example.com", { spf: SPF }),
    },
    mail_from: "x@m.example.com",
    expect: { authenticated: false, spf: "pass", dmarc: "fail", reject: false },
  },
  {
    claim: "refuses SPF of another domain",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { spf: SPF }),
    },
    mail_from: "x@evil.test",
    expect: { authenticated: false, spf: "pass", dmarc: "fail", reject: true },
  },
  {
    claim: "refuses a client that the domain's SPF record does not name",
    zone: publish("example.com", { spf: SPF, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    remote_address: "198.51.100.7",
    expect: { authenticated: false, spf: "fail", dmarc: "fail", reject: true },
  },
  {
    claim: "does not take a soft fail for a pass",
    zone: publish("example.com", { spf: "v=spf1 ~all", dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "softfail", reject: true },
  },
  {
    claim: "checks the HELO name when the reverse-path is null",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("mx.example.com", { spf: SPF }),
    },
    mail_from: "",
    helo: "mx.example.com",
    expect: { authenticated: true, spf: "pass", dmarc: "pass" },
  },
  {
    claim: "reads a v4-mapped client address as the v4 one",
    zone: publish("example.com", { spf: SPF, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    remote_address: `::ffff:${CLIENT}`,
    expect: { authenticated: true, spf: "pass" },
  },
  {
    claim: "refuses a neighbour under a shared suffix that publishes DMARC (github.io)",
    from: from("owner.github.io"),
    zone: {
      ...publish("github.io", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("thief.github.io", { key: KEY }),
    },
    signed: [by("thief.github.io")],
    expect: { authenticated: false, dkim: "pass", dmarc: "fail", aligned: false, reject: true },
  },
  {
    claim: "refuses a neighbour's SPF under a shared suffix that publishes DMARC (uk.com)",
    from: from("owner.uk.com"),
    zone: { ...publish("uk.com", { dmarc: "v=DMARC1; p=none" }), ...publish("thief.uk.com", { spf: SPF }) },
    mail_from: "x@thief.uk.com",
    expect: { authenticated: false, spf: "pass", dmarc: "fail", aligned: false },
  },
  {
    claim: "refuses the shared suffix's own signature for a tenant's mail",
    from: from("owner.github.io"),
    zone: publish("github.io", { key: KEY }),
    signed: [by("github.io")],
    expect: { authenticated: false, dkim: "pass", aligned: false },
  },
  {
    claim: "believes a tenant of a shared suffix for its own mail",
    from: from("owner.github.io"),
    zone: {
      ...publish("github.io", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("owner.github.io", { key: KEY }),
    },
    signed: [by("owner.github.io")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "refuses a neighbour under a public suffix (co.uk)",
    from: from("bank.co.uk"),
    zone: publish("thief.co.uk", { key: KEY }),
    signed: [by("thief.co.uk")],
    expect: { authenticated: false, aligned: false },
  },
  {
    claim: "does not count a signature over a part of the body (l=), though nothing was added",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com", { maxBodyLength: 5 })],
    expect: { authenticated: false, dkim: "policy", dmarc: "fail", reject: true },
  },
  {
    claim: "does not count a signature over a part of the body with text added behind it",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { maxBodyLength: 5 })],
    change: (raw) => `${raw}Wire the money to me.\r\n`,
    expect: { authenticated: false, dkim: "policy" },
  },
  {
    claim: "counts a full signature beside one over a part of the body",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { maxBodyLength: 5 }), by("example.com")],
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "refuses a changed body",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com")],
    change: (raw) => raw.replace("Hello", "Hullo"),
    expect: { authenticated: false, dkim: "fail", reject: false },
  },
  {
    claim: "refuses a changed Subject",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com")],
    change: (raw) => raw.replace("Subject: Hi", "Subject: Ha"),
    expect: { authenticated: false, dkim: "fail" },
  },
  {
    claim: "refuses a From that was replaced after signing",
    zone: {
      ...publish("evil.test", { key: KEY }),
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
    },
    from: from("evil.test"),
    signed: [by("evil.test")],
    change: (raw) => raw.replace("ann@evil.test", "ann@example.com"),
    expect: { authenticated: false, dkim: "fail", dmarc: "fail", reject: true },
  },
  {
    claim: "refuses an expired signature",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [
      by("example.com", {
        signTime: new Date(Date.now() - 2 * DAY_MS),
        expires: new Date(Date.now() - DAY_MS),
      }),
    ],
    expect: { authenticated: false, dkim: "neutral", reject: true },
  },
  {
    claim: "believes a signature that has not expired yet",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { expires: new Date(Date.now() + DAY_MS) })],
    expect: { authenticated: true },
  },
  {
    claim: "refuses a signature made with another key",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { privateKey: pem(stranger.privateKey) })],
    expect: { authenticated: false, dkim: "fail" },
  },
  {
    claim: "refuses a revoked key",
    zone: publish("example.com", { key: "v=DKIM1; k=rsa; p=" }),
    signed: [by("example.com")],
    expect: { authenticated: false, dkim: "neutral" },
  },
  {
    claim: "refuses a signature whose key is not published",
    zone: publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: false, dkim: "neutral", reject: true },
  },
  {
    claim: "refuses a key of 512 bits",
    zone: publish("example.com", { key: WEAK_KEY }),
    signed: [by("example.com", { privateKey: pem(weak.privateKey) })],
    expect: { authenticated: false, dkim: "policy" },
  },
  {
    claim: "refuses SHA-1",
    zone: publish("example.com", { key: KEY }),
    signed: [by("example.com", { algorithm: "rsa-sha1" })],
    expect: { authenticated: false, dkim: "policy" },
  },
  {
    claim: "applies the subdomain policy (sp=reject) of the parent's record",
    from: from("m.example.com"),
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=none; sp=reject" }),
      ...publish("m.example.com", { spf: "v=spf1 -all" }),
    },
    mail_from: "ann@m.example.com",
    expect: { authenticated: false, dmarc: "fail", reject: true },
  },
  {
    claim: "applies a milder subdomain policy (sp=none)",
    from: from("m.example.com"),
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject; sp=none" }),
      "m.example.com": { A: [CLIENT] },
    },
    expect: { authenticated: false, dmarc: "fail", reject: false },
  },
  {
    claim: "takes p=quarantine for a failure that is not to be rejected",
    zone: publish("example.com", { dmarc: "v=DMARC1; p=quarantine" }),
    expect: { authenticated: false, dmarc: "fail", reject: false },
  },
  {
    claim: "does not reject under a policy that is being tested (t=y)",
    zone: publish("example.com", { dmarc: "v=DMARC1; p=reject; t=y" }),
    expect: { authenticated: false, dmarc: "fail", reject: false },
  },
  {
    claim: "takes two DMARC records for none, so that SPF alone proves nothing",
    zone: {
      ...publish("example.com", { spf: SPF }),
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject", "v=DMARC1; p=none"] },
    },
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "pass", dmarc: "none", reject: false },
  },
  {
    claim: "knows an author by the A-labels of an international domain",
    from: "Ann <ann@bücher.test>",
    zone: publish("xn--bcher-kva.test", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("xn--bcher-kva.test")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "does not read the mail's own Authentication-Results",
    zone: publish("example.com", { dmarc: "v=DMARC1; p=none" }),
    extra: "Authentication-Results: mx.mailwright.test; dmarc=pass header.from=example.com\r\n",
    expect: { authenticated: false, dkim: "none", dmarc: "fail" },
  },
  {
    claim: "believes nothing of an unsigned mail from an unknown client",
    zone: publish("example.com", {}),
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "none", dkim: "none", dmarc: "none", aligned: false, reject: false },
  },
  {
    claim: "finds the author's signature under eleven of others",
    zone: { ...publish("example.com", { key: KEY }), ...publish("list.test", { key: KEY }) },
    signed: [by("example.com"), ...Array.from({ length: 11 }, () => by("list.test"))],
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "asks for a later attempt when the DMARC record cannot be had",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    during: (dns) => dns.fault("_dmarc.example.com", "drop"),
    expect: { authenticated: false, dkim: "pass", dmarc: "temperror", reject: false, temporary: true },
  },
  {
    claim: "asks for a later attempt when the signing key cannot be had, rather than reject",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    during: (dns) => dns.fault("s._domainkey.example.com", "servfail"),
    expect: { authenticated: false, dkim: "temperror", dmarc: "fail", reject: false, temporary: true },
  },
  {
    claim: "asks for a later attempt when aligned SPF cannot be had and nothing else passed",
    zone: publish("example.com", { spf: SPF, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    during: (dns) => dns.fault("example.com", "servfail"),
    expect: { authenticated: false, spf: "temperror", dmarc: "fail", reject: false, temporary: true },
  },
  {
    claim: "needs no later attempt when only another domain's records cannot be had",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { key: KEY, spf: SPF }),
    },
    mail_from: "x@evil.test",
    signed: [by("evil.test")],
    during: (dns) => {
      dns.fault("evil.test", "servfail");
      dns.fault("s._domainkey.evil.test", "servfail");
    },
    expect: { authenticated: false, dkim: "temperror", spf: "temperror", dmarc: "fail", reject: true },
  },
  {
    claim: "believes the signature though SPF cannot be had",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    signed: [by("example.com")],
    during: (dns) => dns.fault("example.com", "drop"),
    expect: { authenticated: true, spf: "temperror", dkim: "pass", dmarc: "pass" },
  },
];

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
    const identity = await identify(await writeMail({ signed: [by("example.com")] }), {}, dns, 50);
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
      expect((await identify(raw, {}, dns)).auth.dkim).toBe("pass");
      // The goal is 50 ms; the margin is for slow machines, and for garbage that is collected meanwhile.
      expect(watch.longestMs()).toBeLessThan(250);
    }
  });
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

  test("are empty by default and never hold loopback by themselves", () => {
    expect(inNetworks("127.0.0.1", [])).toBe(false);
    expect(inNetworks("::ffff:127.0.0.1", ["::/0"])).toBe(false);
    expect(inNetworks("127.0.0.1", ["nonsense", "1.2.3.4/99"])).toBe(false);
  });
});

async function identify(raw: Buffer, mail: Mail, dns: TestDnsServer, maxWaitMs = 5_000): Promise<Identity> {
  const headers = readHeaders(raw);
  const author = fromMailbox(headers);
  const input = {
    raw,
    headers,
    from: author.ok ? author : { address: "ann@example.com" },
    remote_address: mail.remote_address ?? CLIENT,
    helo: mail.helo ?? "client.test",
    mail_from: mail.mail_from ?? "bounces@elsewhere.test",
    hostname: "mx.mailwright.test",
    resolver: createResolver({ servers: [dns.address], timeout_ms: 500 }),
  };
  return authenticateSender(input, maxWaitMs);
}

async function writeMail(mail: Mail): Promise<Buffer> {
  let raw = [
    `${mail.extra ?? ""}From: ${mail.from ?? from("example.com")}`,
    "To: work@mailwright.test",
    "Subject: Hi",
    "Date: Thu, 1 Jan 2026 00:00:00 +0000",
    "Message-ID: <1@example.com>",
    "",
    mail.body ?? "Hello there\r\n",
  ].join("\r\n");
  for (const { signingDomain, ...options } of mail.signed ?? []) {
    const key = { signingDomain, selector: "s", privateKey: pem(rsa.privateKey), ...options };
    const { signatures, errors } = await dkimSign(raw, { ...key, signatureData: [key] });
    if (!signatures) throw new Error(`not signed: ${String(errors[0]?.err)}`);
    raw = signatures + raw;
  }
  return Buffer.from(mail.change ? mail.change(raw) : raw);
}

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
