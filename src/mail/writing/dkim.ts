import { asciiHost } from "../../lib/web-address.ts";
import { createPublicKey, generateKeyPair, sign } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { sha256, sha256Bytes } from "../../lib/sha256.ts";

export interface DkimKey {
  selector: string;
  algorithm: "rsa" | "ed25519";
  private_key: KeyObject;
}

export type DkimKeys = readonly DkimKey[];

export interface DnsRecord {
  type: "TXT";
  name: string;
  value: string;
}

const RSA_BITS = 2048;
const FOLD_AT = 72;

/** Fields to sign. Each is signed once more than it occurs, so that none can be added later (RFC 6376 §8.15). */
const SIGNED_FIELDS = [
  "From",
  "To",
  "Cc",
  "Subject",
  "Date",
  "Message-ID",
  "In-Reply-To",
  "References",
  "Reply-To",
  "Auto-Submitted",
  "MIME-Version",
  "Content-Type",
];

const generate = promisify(generateKeyPair);
/** Signs on the thread pool (the callback form does), because RSA would block the event loop for half a millisecond. */
const signAside = promisify(sign);

export type DkimKeyMaker = (algorithm: DkimKey["algorithm"]) => Promise<KeyObject>;

/** Returns a new private key. RSA takes a fraction of a second, on the thread pool. */
export async function makeDkimKey(algorithm: DkimKey["algorithm"]): Promise<KeyObject> {
  const made =
    algorithm === "rsa" ? await generate("rsa", { modulusLength: RSA_BITS }) : await generate("ed25519");
  return made.privateKey;
}

/** Returns the `p=` of a key's record. */
export function publicPart({ algorithm, private_key }: Omit<DkimKey, "selector">): string {
  const der = createPublicKey(private_key).export({ type: "spki", format: "der" });
  // RFC 8463 section 4.2: the bare 32 octets for Ed25519; RFC 6376 section 3.6.1: the whole structure for RSA.
  return (algorithm === "ed25519" ? der.subarray(-32) : der).toString("base64");
}

/** Returns a key in PEM (PKCS #8). */
export function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" });
}

/** Returns the DNS record that the owner of `domain` publishes for a key, so that receivers can check its signatures. */
export function dkimRecord(
  key: Pick<DkimKey, "selector" | "algorithm"> & { public_part: string },
  domain: string,
): DnsRecord {
  return {
    type: "TXT",
    name: `${key.selector}._domainkey.${asciiHost(domain)}`,
    value: `v=DKIM1; k=${key.algorithm}; p=${key.public_part}`,
  };
}

/** Returns the `dkimRecord` of each of these keys. */
export function dnsRecords(keys: DkimKeys, domain: string): DnsRecord[] {
  return keys.map((key) => dkimRecord({ ...key, public_part: publicPart(key) }, domain));
}

/**
 * Returns the mail with one DKIM-Signature per key in front. `raw` must have CRLF line ends and a From of `domain`. The
 * signature's time is the mail's Date, so signing the same mail again gives the same bytes.
 */
export async function signMail(raw: Buffer, domain: string, keys: DkimKeys): Promise<Buffer> {
  const headers_end = raw.indexOf("\r\n\r\n");
  if (headers_end < 0) throw new Error("A mail without an end of its header section cannot be signed.");
  const fields = raw
    .subarray(0, headers_end)
    .toString("latin1")
    .split(/\r\n(?![ \t])/);
  const signing_domain = asciiHost(domain);
  requireFrom(fields, signing_domain);
  const signed = signedFields(fields);
  const tags = {
    d: signing_domain,
    t: Math.floor(dateOf(fields).getTime() / 1000),
    h: fold(signed.names.map((name, index) => (index === 0 ? name : `:${name}`))),
    bh: sha256(relaxedBody(raw.subarray(headers_end + 4)), "base64"),
  };
  const signatures = await Promise.all(keys.map((key) => signatureField(key, tags, signed.canonical)));
  return Buffer.concat([...signatures.map((field) => Buffer.from(field + "\r\n", "latin1")), raw]);
}

/**
 * Throws unless From has this domain: a signature by another domain counts for nothing in DMARC, so asking for one is a
 * bug.
 */
function requireFrom(fields: string[], domain: string): void {
  const from = fields.filter((field) => /^from:/i.test(field));
  const author = /@([^@\s>]+)>?\s*$/.exec(from[0] ?? "")?.[1];
  const authorDomain = asciiHost(Buffer.from(author ?? "", "latin1").toString("utf8"));
  if (from.length === 1 && authorDomain === domain && domain !== "") return;
  throw new Error(`A mail from "${authorDomain}" cannot be signed for "${domain}".`);
}

function dateOf(fields: string[]): Date {
  const value = fields.find((field) => /^date:/i.test(field))?.slice("date:".length) ?? "";
  const date = new Date(value.trim());
  return Number.isNaN(date.getTime()) ? new Date() : date;
}

function signedFields(fields: string[]): { names: string[]; canonical: string } {
  const names: string[] = [];
  let canonical = "";
  for (const name of SIGNED_FIELDS) {
    // RFC 6376 section 5.4.2: several fields of one name are signed from the last up.
    const present = fields
      .filter((field) => field.toLowerCase().startsWith(`${name.toLowerCase()}:`))
      .toReversed();
    names.push(...present.map(() => name), name);
    canonical += present.map((field) => relaxedField(field) + "\r\n").join("");
  }
  return { names, canonical };
}

async function signatureField(
  key: DkimKey,
  tags: { d: string; t: number; h: string; bh: string },
  canonical: string,
): Promise<string> {
  const field = [
    `DKIM-Signature: v=1; a=${key.algorithm}-sha256; c=relaxed/relaxed;`,
    ` d=${tags.d}; s=${key.selector}; t=${tags.t};`,
    ` h=${tags.h};`,
    ` bh=${tags.bh};`,
    " b=",
  ].join("\r\n");
  const input = Buffer.from(canonical + relaxedField(field), "latin1");
  const signature =
    key.algorithm === "rsa"
      ? await signAside("sha256", input, key.private_key)
      : // RFC 8463 section 3: Ed25519 signs the SHA-256 of the data, not the data.
        await signAside(null, sha256Bytes(input), key.private_key);
  return field + fold(signature.toString("base64").match(/.{1,64}/g) ?? []);
}

function fold(parts: string[]): string {
  let lineLength = FOLD_AT / 8;
  return parts.reduce((text, part) => {
    lineLength += part.length;
    if (lineLength <= FOLD_AT) return text + part;
    lineLength = part.length;
    return `${text}\r\n ${part}`;
  }, "");
}

/** Returns a header field in relaxed canonical form (RFC 6376 §3.4.2). */
function relaxedField(field: string): string {
  const colon = field.indexOf(":");
  const value = field
    .slice(colon + 1)
    .replaceAll("\r\n", "")
    .replaceAll(/[ \t]+/g, " ")
    .replaceAll(/^ | $/g, "");
  return `${field.slice(0, colon).trimEnd().toLowerCase()}:${value}`;
}

/** Returns the body in relaxed canonical form (RFC 6376 §3.4.4). */
function relaxedBody(body: Buffer): Buffer {
  const text = body
    .toString("latin1")
    .replaceAll(/[ \t]+/g, " ")
    .replaceAll(" \r\n", "\r\n")
    .replace(/ $/, "");
  let end = text.length;
  while (end >= 2 && text.startsWith("\r\n", end - 2)) end -= 2;
  return Buffer.from(end === 0 ? "" : `${text.slice(0, end)}\r\n`, "latin1");
}
