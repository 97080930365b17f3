import { type HeaderField, withoutBlanks } from "./header-block.ts";
import { sha256 } from "../../lib/sha256.ts";

const CANONICALIZATIONS = ["simple", "relaxed"] as const;
type Canonicalization = (typeof CANONICALIZATIONS)[number];

const SP = 0x20;
const HTAB = 0x09;
const CR = 0x0d;
const LF = 0x0a;

/**
 * What a signature (RFC 6376) covers of a mail, and how. Whoever has the mail can change all the rest and send it on
 * with a signature that stays valid, so a mail that nothing else vouches for is read in this form alone.
 */
export interface SignedForm {
  /** The names of h=, in order and in lower case; a name that is in it twice covers two fields. */
  fields: string[];
  header: Canonicalization;
  body: Canonicalization;
  /** SHA-256 in base64 of the body in its canonical form. */
  body_hash: string;
  /** The address in i=, for whom the domain has signed (RFC 6376 §3.5); absent if i= names only a domain. */
  agent?: string;
}

/** Returns the form that a DKIM-Signature or ARC-Message-Signature field describes. */
function formNamed(signature: string, body_hash: string): SignedForm | undefined {
  const tags = tagsOf(signature);
  // RFC 6376 §3.5: without c= both are simple; if c= names only that of the header, the body's is simple.
  const [header = "", body = "simple"] = (tags.get("c") ?? "simple/simple").toLowerCase().split("/");
  if (!isCanonicalization(header) || !isCanonicalization(body) || tags.has("l")) return undefined;
  const fields = (tags.get("h") ?? "")
    .split(":")
    .map((name) => name.replaceAll(/[ \t]/g, "").toLowerCase())
    .filter((name) => name !== "");
  const agent = readAgent(tags.get("i") ?? "");
  return { fields, header, body, body_hash, ...(agent !== undefined && { agent }) };
}

function readAgent(value: string): string | undefined {
  if (value.indexOf("@") < 1) return undefined;
  const octet = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));
  return value.replaceAll(/=([\dA-F]{2})/g, octet).toLowerCase();
}

function isCanonicalization(word: string): word is Canonicalization {
  return (CANONICALIZATIONS as readonly string[]).includes(word);
}

function tagsOf(signature: string): Map<string, string> {
  const tags = signature.split(";").map((tag): [string, string] => {
    const [name = ""] = tag.split("=", 1);
    return [withoutBlanks(name), withoutBlanks(tag.slice(name.length + 1))];
  });
  return new Map(tags);
}

/** The members of the verifier's result that are needed here. */
interface Verified {
  bodyHash?: string;
  /**
   * `canonicalizedHeader`: the header that the verifier hashed, in base64; the signature's own field is the last of it.
   */
  signingHeaders?: { canonicalizedHeader?: string };
}

/**
 * Returns the form of a valid signature; undefined if this server would not read exactly the bytes that the verifier
 * hashed.
 */
export function formVerified(
  { raw, headers }: { raw: Uint8Array; headers: { fields: readonly HeaderField[] } },
  signature: HeaderField | undefined,
  { bodyHash, signingHeaders }: Verified,
): SignedForm | undefined {
  if (!signature || bodyHash === undefined) return undefined;
  const form = formNamed(signature.value, bodyHash);
  if (!form) return undefined;
  const ours = signedHeader(raw, headers.fields, form);
  const hashed = Buffer.from(signingHeaders?.canonicalizedHeader ?? "", "base64");
  const own = hashed.toString("latin1", ours.length, ours.length + signature.name.length + 1).toLowerCase();
  const is_whole = own.startsWith(signature.name) && hashed.subarray(0, ours.length).equals(ours);
  return is_whole ? form : undefined;
}

/** Returns the signed fields as they were hashed, each with its line end, in the order of h= (RFC 6376 §5.4.2). */
export function signedHeader(raw: Uint8Array, fields: readonly HeaderField[], form: SignedForm): Buffer {
  const left = Map.groupBy(fields, ({ name }) => name);
  const lines = form.fields.flatMap((name) => {
    const field = left.get(name)?.pop();
    if (!field) return [];
    const text = Buffer.from(raw.buffer, raw.byteOffset + field.start, field.end - field.start);
    return `${canonicalField(text.toString("latin1").replace(/\r?\n$/, ""), form.header)}\r\n`;
  });
  return Buffer.from(lines.join(""), "latin1");
}

/** Returns a field in canonical form (RFC 6376 §3.4.1 and §3.4.2). */
function canonicalField(text: string, canonicalization: Canonicalization): string {
  if (canonicalization === "simple") return text.replaceAll(/\r?\n/g, "\r\n");
  const [name = ""] = text.split(":", 1);
  const value = text
    .slice(name.length + 1)
    .replaceAll(/\r?\n/g, "")
    .replaceAll(/[ \t]+/g, " ");
  return `${withoutBlanks(name).toLowerCase()}:${withoutBlanks(value)}`;
}

/** Returns the mail in its signed form; undefined if its body is not the one that was signed. */
export function inSignedForm(
  raw: Uint8Array,
  { fields, body_offset }: { fields: readonly HeaderField[]; body_offset: number },
  form: SignedForm,
): Uint8Array | undefined {
  const body = canonicalBody(raw.subarray(body_offset), form.body);
  if (sha256(body, "base64") !== form.body_hash) return undefined;
  return Buffer.concat([signedHeader(raw, fields, form), Buffer.from("\r\n"), body]);
}

/**
 * Returns the body in canonical form (RFC 6376 §3.4.3 and §3.4.4). A bare LF ends a line, as it does for the verifier;
 * a bare CR does not.
 */
function canonicalBody(body: Uint8Array, canonicalization: Canonicalization): Uint8Array {
  const relaxed = canonicalization === "relaxed";
  const canonical = new Uint8Array(body.length + bareLineFeeds(body) + 2);
  let size = 0;
  /** The position behind the last line that is not empty, without its line end. */
  let end = 0;
  let blank = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at] ?? 0;
    if (byte === LF) {
      canonical[size++] = CR;
      canonical[size++] = LF;
      blank = false;
    } else if (byte === CR && body[at + 1] === LF) continue;
    else if (relaxed && (byte === SP || byte === HTAB)) blank = true;
    else {
      if (blank) canonical[size++] = SP;
      canonical[size++] = byte;
      blank = false;
      end = size;
    }
  }
  if (end === 0 && relaxed) return canonical.subarray(0, 0);
  canonical[end++] = CR;
  canonical[end++] = LF;
  return canonical.subarray(0, end);
}

function bareLineFeeds(body: Uint8Array): number {
  let count = 0;
  for (let lf = body.indexOf(LF); lf >= 0; lf = body.indexOf(LF, lf + 1)) if (body[lf - 1] !== CR) count += 1;
  return count;
}
