import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { type DKIMSignOptions, dkimSign, sealMessage } from "mailauth";
import { createResolver } from "../../src/net/dns.ts";
import { authenticateSender, type Identity } from "../../src/mail/reading/authenticate.ts";
import { fromMailbox, readHeaders } from "../../src/mail/reading/headers.ts";
import type { DnsZone, TestDnsServer } from "./dns-server.ts";
import { DAY_MS } from "../../src/lib/durations.ts";

export const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ed25519 = generateKeyPairSync("ed25519");
const weak = generateKeyPairSync("rsa", { modulusLength: 512 });

export const KEY = `v=DKIM1; k=rsa; p=${rsa.publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const WEAK_KEY = `v=DKIM1; k=rsa; p=${weak.publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const ED_KEY = `v=DKIM1; k=ed25519; p=${ed25519.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64")}`;

export const CLIENT = "192.0.2.10";

export interface Mail {
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
  /** Servers on the way that seal what they saw, one after the other. */
  sealed?: { by: string; results: string; cv?: string }[];
  /** Whose seals are believed. */
  sealers?: string[];
  /** Changes the sealed mail. */
  tamper?: (raw: string) => string;
}

export interface Case extends Mail {
  claim: string;
  zone: DnsZone;
  expect: Partial<Identity["auth"]> & { authenticated: boolean; reject?: boolean; temporary?: boolean };
  during?: (dns: TestDnsServer) => void;
  /** Why we believe less than other people's programs do, where that is so. */
  stricter?: string;
}

const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" });
const from = (domain: string) => `Ann <ann@${domain}>`;

/** What a domain publishes: its signing key, SPF for CLIENT, and a DMARC record. */
export const publish = (
  domain: string,
  records: { key?: string; spf?: string; dmarc?: string },
): DnsZone => ({
  [domain]: { A: ["192.0.2.1"], ...(records.spf && { TXT: [records.spf] }) },
  ...(records.key && { [`s._domainkey.${domain}`]: { TXT: [records.key] } }),
  ...(records.dmarc && { [`_dmarc.${domain}`]: { TXT: [records.dmarc] } }),
});

export const SPF = `v=spf1 ip4:${CLIENT} -all`;
export const by = (signingDomain: string, more: Partial<DKIMSignOptions> = {}) => ({
  signingDomain,
  ...more,
});

const FOOTER = (raw: string): string => `${raw}-- \r\nThe list\r\n`;
const PASSED =
  "dkim=pass header.d=example.com; spf=pass smtp.mailfrom=ann@example.com; dmarc=pass header.from=example.com";
const sealedBy = (by: string, results = PASSED) => ({ by, results });

export const CASES: Case[] = [
  {
    claim: "believes an aligned signature under a DMARC record",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dkim: "pass", dmarc: "pass", spf: "none", aligned: true },
  },
  {
    claim: "believes the very domain's signature where no DMARC record is published",
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
    stricter: "libopendmarc 1.4.2 reads strict alignment but aligns as if it were relaxed (RFC 7489 §3.1)",
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
  ...(
    [
      ["a subdomain", "example.com", "m.example.com"],
      ["the parent", "m.example.com", "example.com"],
      ["a sibling", "cs.example.com", "club.example.com"],
      ["a fellow tenant below a name on no list", "ann.zendesk.com", "eve.zendesk.com"],
    ] as const
  ).map(([whose, author, signer]): Case => ({
    claim: `refuses the valid signature of ${whose} where no DMARC record is published`,
    from: from(author),
    zone: { ...publish(author, {}), ...publish(signer, { key: KEY, spf: SPF }) },
    mail_from: `x@${signer}`,
    signed: [by(signer)],
    expect: { authenticated: false, dkim: "pass", dmarc: "none", reject: false },
  })),
  {
    claim: "counts the author's own signature beside a sibling's where no DMARC record is published",
    from: from("cs.example.com"),
    zone: { ...publish("cs.example.com", { key: KEY }), ...publish("club.example.com", { key: KEY }) },
    signed: [by("cs.example.com"), by("club.example.com")],
    expect: { authenticated: true, dkim: "pass", dmarc: "none", aligned: true },
  },
  {
    claim: "puts no mail off for the key of a sibling that could not vouch for it",
    from: from("cs.example.com"),
    zone: publish("cs.example.com", {}),
    signed: [by("club.example.com")],
    during: (dns) => dns.fault("s._domainkey.club.example.com", "servfail"),
    expect: { authenticated: false, dkim: "temperror", dmarc: "none" },
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
    stricter: "libopendmarc 1.4.2 reads strict alignment but aligns as if it were relaxed (RFC 7489 §3.1)",
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
    stricter: "what follows that part may be anybody's (RFC 6376 §8.2)",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com", { maxBodyLength: 5 })],
    expect: { authenticated: false, dkim: "policy", dmarc: "fail", reject: true },
  },
  {
    claim: "does not count a signature over a part of the body with text added behind it",
    stricter: "what follows that part may be anybody's (RFC 6376 §8.2)",
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
    stricter: "RFC 8301 §3.1 forbids it",
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
  {
    claim: "believes two signatures of different kinds of which one passes",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      "e._domainkey.example.com": { TXT: ["v=DKIM1; k=ed25519; p="] },
    },
    signed: [by("example.com", { privateKey: pem(ed25519.privateKey), selector: "e" }), by("example.com")],
    expect: { authenticated: true, dkim: "pass", dmarc: "pass" },
  },
  {
    claim: "refuses an Ed25519 signature under an RSA key record",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com", { privateKey: pem(ed25519.privateKey) })],
    expect: { authenticated: false, dmarc: "fail", reject: true },
  },
  {
    claim: "finds a key behind a CNAME",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      "s._domainkey.example.com": { CNAME: ["key.provider.test"] },
      "key.provider.test": { TXT: [KEY] },
    },
    signed: [by("example.com")],
    expect: { authenticated: true, dkim: "pass" },
  },
  {
    claim: "refuses a signature of a whole public suffix",
    from: from("example.com"),
    zone: publish("com", { key: KEY }),
    signed: [by("com")],
    expect: { authenticated: false, aligned: false },
  },
  {
    claim: "knows who forwarded a signed mail: the author, though SPF fails",
    zone: {
      ...publish("example.com", { key: KEY, spf: SPF, dmarc: "v=DMARC1; p=reject" }),
      ...publish("forwarder.test", {}),
    },
    mail_from: "ann@example.com",
    remote_address: "198.51.100.7",
    signed: [by("example.com")],
    expect: { authenticated: true, spf: "fail", dkim: "pass", dmarc: "pass" },
  },
  {
    claim: "believes no forwarded mail that only SPF spoke for",
    zone: {
      ...publish("example.com", { spf: SPF, dmarc: "v=DMARC1; p=reject" }),
      ...publish("forwarder.test", { spf: "v=spf1 ip4:198.51.100.7 -all" }),
    },
    mail_from: "SRS0=abcd=ef=example.com=ann@forwarder.test",
    remote_address: "198.51.100.7",
    expect: { authenticated: false, spf: "pass", dmarc: "fail", reject: true },
  },
  {
    claim: "believes no mail of a list that has added a footer and its own signature",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=none" }),
      ...publish("list.test", { key: KEY, spf: SPF }),
    },
    mail_from: "bounces@list.test",
    signed: [by("example.com")],
    change: (raw) => `${raw}-- \r\nThe list\r\n`,
    expect: { authenticated: false, spf: "pass", dkim: "fail", dmarc: "fail" },
  },
  {
    claim: "takes a list that writes under its own address for the author",
    from: '"Ann by way of the list" <list@list.test>',
    zone: publish("list.test", { key: KEY, spf: SPF, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "bounces@list.test",
    signed: [by("list.test")],
    expect: { authenticated: true, spf: "pass", dkim: "pass", dmarc: "pass" },
  },
  {
    claim: "goes by the address of From, not by one in its display name",
    from: '"ann@example.com" <x@evil.test>',
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { key: KEY, dmarc: "v=DMARC1; p=none" }),
    },
    signed: [by("evil.test")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "reads SPF of IPv6 addresses",
    zone: publish("example.com", { spf: "v=spf1 ip6:2001:db8::/32 -all", dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    remote_address: "2001:db8::25",
    expect: { authenticated: true, spf: "pass" },
  },
  {
    claim: "follows SPF includes and redirects",
    zone: {
      ...publish("example.com", {
        spf: "v=spf1 include:_spf.provider.test -all",
        dmarc: "v=DMARC1; p=reject",
      }),
      "_spf.provider.test": { TXT: ["v=spf1 redirect=_two.provider.test"] },
      "_two.provider.test": { TXT: [`v=spf1 ip4:${CLIENT} ~all`] },
    },
    mail_from: "ann@example.com",
    expect: { authenticated: true, spf: "pass" },
  },
  {
    claim: "reads SPF by a and mx",
    zone: {
      "example.com": { A: ["192.0.2.1"], MX: [[10, "mx.example.com"]], TXT: ["v=spf1 a mx -all"] },
      "mx.example.com": { A: [CLIENT] },
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
    },
    mail_from: "ann@example.com",
    expect: { authenticated: true, spf: "pass" },
  },
  {
    claim: "takes SPF with too many lookups for an error",
    zone: {
      ...publish("example.com", {
        spf: `v=spf1 ${Array.from({ length: 11 }, (_, i) => `include:i${i}.test`).join(" ")} ip4:${CLIENT} -all`,
        dmarc: "v=DMARC1; p=reject",
      }),
      ...Object.fromEntries(
        Array.from({ length: 11 }, (_, i) => [`i${i}.test`, { TXT: ["v=spf1 ip4:203.0.113.1 -all"] }]),
      ),
    },
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "permerror", reject: true },
  },
  {
    claim: "takes two SPF records for an error",
    zone: {
      "example.com": { TXT: [SPF, "v=spf1 +all"] },
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
    },
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "permerror", reject: true },
  },
  {
    claim: "refuses an SPF record that cannot be read",
    zone: publish("example.com", { spf: `v=spf1 ipv4:${CLIENT} -all`, dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "permerror", reject: true },
  },
  {
    claim: "does not take a neutral answer for a pass",
    zone: publish("example.com", { spf: "v=spf1 ?all", dmarc: "v=DMARC1; p=reject" }),
    mail_from: "ann@example.com",
    expect: { authenticated: false, spf: "neutral", reject: true },
  },
  {
    claim: "refuses the HELO name of somebody else under the null reverse-path",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("mx.evil.test", { spf: SPF }),
    },
    mail_from: "",
    helo: "mx.evil.test",
    expect: { authenticated: false, spf: "pass", dmarc: "fail", reject: true },
  },
  {
    claim: "does not let the HELO name speak for an envelope that names another",
    zone: {
      ...publish("example.com", { dmarc: "v=DMARC1; p=reject" }),
      ...publish("mx.example.com", { spf: SPF }),
      ...publish("evil.test", { spf: SPF }),
    },
    mail_from: "x@evil.test",
    helo: "mx.example.com",
    expect: { authenticated: false, spf: "pass", reject: true },
  },
  {
    claim: "takes a DMARC record of another version for none",
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC2; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dmarc: "none" },
  },
  {
    claim: "uses the parent's record for a subdomain of a subdomain",
    from: from("a.b.example.com"),
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
    signed: [by("example.com")],
    expect: { authenticated: true, dmarc: "pass" },
  },
  {
    claim: "refuses the parent's signature for a subdomain under strict alignment",
    stricter: "libopendmarc 1.4.2 reads strict alignment but aligns as if it were relaxed (RFC 7489 §3.1)",
    from: from("m.example.com"),
    zone: publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject; adkim=s" }),
    signed: [by("example.com")],
    expect: { authenticated: false, dkim: "pass", dmarc: "fail", reject: true },
  },
  {
    claim: "believes what a named forwarder has sealed",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      ...publish("forwarder.test", { key: KEY }),
    },
    signed: [by("example.com")],
    change: FOOTER,
    sealed: [sealedBy("forwarder.test")],
    sealers: ["forwarder.test"],
    expect: { authenticated: true, dkim: "fail", dmarc: "fail", aligned: true },
  },
  {
    claim: "believes nothing that somebody unnamed has sealed",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { key: KEY }),
    },
    sealed: [sealedBy("evil.test")],
    sealers: ["forwarder.test"],
    expect: { authenticated: false, dmarc: "fail", reject: true },
  },
  {
    claim: "believes no seal of a mail that was changed after it",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      ...publish("forwarder.test", { key: KEY }),
    },
    sealed: [sealedBy("forwarder.test")],
    sealers: ["forwarder.test"],
    tamper: (raw) => raw.replace("Hello", "Hullo"),
    expect: { authenticated: false, dmarc: "fail", reject: true },
  },
  {
    claim: "believes two named forwarders, one behind the other",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      ...publish("list.test", { key: KEY }),
      ...publish("forwarder.test", { key: KEY }),
    },
    signed: [by("example.com")],
    change: FOOTER,
    sealed: [
      sealedBy("list.test"),
      sealedBy(
        "forwarder.test",
        "arc=pass; dkim=fail header.d=example.com; dmarc=fail header.from=example.com",
      ),
    ],
    sealers: ["forwarder.test", "list.test"],
    expect: { authenticated: true, aligned: true },
  },
  {
    claim: "believes no named forwarder about what somebody unnamed has sealed before",
    zone: {
      ...publish("example.com", { key: KEY, dmarc: "v=DMARC1; p=reject" }),
      ...publish("evil.test", { key: KEY }),
      ...publish("forwarder.test", { key: KEY }),
    },
    sealed: [
      sealedBy("evil.test"),
      sealedBy("forwarder.test", "arc=pass; dkim=none; dmarc=fail header.from=example.com"),
    ],
    sealers: ["forwarder.test"],
    expect: { authenticated: false, dmarc: "fail", reject: true },
  },
];

export async function identify(
  raw: Buffer,
  mail: Mail,
  dns: TestDnsServer,
  { max_wait_ms = 5_000, dns_ms = 500 } = {},
): Promise<Identity> {
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
    resolver: createResolver({ servers: [dns.address], timeout_ms: dns_ms }),
    arc_sealers: mail.sealers ?? [],
  };
  return authenticateSender(input, max_wait_ms);
}

export async function writeMail(mail: Mail): Promise<Buffer> {
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
  const sealed = await seal(mail.change ? mail.change(raw) : raw, mail.sealed ?? []);
  return mail.tamper ? Buffer.from(mail.tamper(sealed.toString())) : sealed;
}

async function seal(raw: string, seals: NonNullable<Mail["sealed"]>): Promise<Buffer> {
  let mail = Buffer.from(raw);
  for (const [index, { by: signingDomain, results, cv }] of seals.entries()) {
    const key = { signingDomain, selector: "s", privateKey: pem(rsa.privateKey) };
    const authResults = `mx.${signingDomain}; ${results}`;
    const set = { ...key, authResults, cv: cv ?? (index === 0 ? "none" : "pass") };
    mail = Buffer.concat([await sealMessage(mail, set), mail]);
  }
  return mail;
}
