import { setImmediate as nextTurn } from "node:timers/promises";
import { Readable } from "node:stream";
import type { DKIMResult, DNSResolver } from "mailauth";
import { messageOf } from "../../errors.ts";
import type { Check, Envelope } from "./authenticate.ts";
import { domainOf, inSameHands, isSameDomain } from "../../net/domain-owner.ts";
import type { HeaderField } from "./header-block.ts";
import { formVerified, type SignedForm } from "./signed-form.ts";
import { MB } from "../../lib/sizes.ts";

export const MAX_SIGNATURES = 10;
/**
 * The longest signature that is checked, and field of ARC that the verifier reads: it takes the square of their blanks. A
 * 4096-bit one over a long list of fields takes about 2 KB.
 */
const MAX_SIGNATURE_BYTES = 4_096;
/** The most names in h=: each is looked for among all fields of the mail. Signers name about 40. */
const MAX_SIGNED_NAMES = 200;
/** The body is read in pieces of this size with a pause after each; the slowest takes about 10 ms. */
const PIECE_BYTES = 32_768;
/**
 * The longest line that is checked: canonicalizing takes time with the square of its length. SMTP allows 1,000 octets
 * (RFC 5321 §4.5.3.1.6).
 */
const MAX_LINE_BYTES = MB;

export interface SignatureCheck extends Check {
  /** What each aligned valid signature covers, and its domain. */
  signed: { domain: string; form: SignedForm }[];
  /** What the verifier threw. That is a bug, but no reason to put a stranger's mail off for ever. */
  verifier_fault?: string;
}

/** Verifies the DKIM signatures (RFC 6376), those of the From domain first, without holding up other sessions. */
export async function verifySignatures(mail: Envelope, signal: AbortSignal): Promise<SignatureCheck> {
  const from = domainOf(mail.from.address);
  const fields = mail.headers.fields.filter((field) => field.name === "dkim-signature");
  const unread = { result: fields.length > 0 ? "policy" : "none", aligned: [], signed: [], undecided: [] };
  const chosen = chooseSignatures(fields, from);
  const { complete, problem } = mail.headers;
  if (chosen.size === 0 || !complete || problem !== null || hasEndlessLine(mail)) return unread;
  const { dkimVerify } = await import("mailauth");
  const left_out = new Set([
    ...fields.filter((field) => !chosen.has(field)),
    ...mail.headers.fields.filter((field) => field.name.startsWith("arc-") && isTooLong(field)),
  ]);
  const options = { resolver: mail.resolver as DNSResolver, sender: mail.mail_from, strict: true };
  const found = await dkimVerify(streamOf(mail, left_out, signal), options).catch(messageOf);
  if (typeof found === "string") return { ...unread, result: "permerror", verifier_fault: found };
  const { results, fromFields } = found;
  // In strict mode the verifier returns one result for each signature, in their order.
  const checked = fields.filter((field) => chosen.has(field));
  const outcomes = results.map((row, index) => ({
    row,
    signature: checked[index],
    result: outcomeOf(row),
    domain: row.signingDomain ?? "",
    ours: inSameHands(row.signingDomain ?? "", from),
  }));
  const valid = fromFields === 1 ? outcomes.filter((row) => row.ours && row.result === "pass") : [];
  return {
    result: WORDS.find((word) => outcomes.some((row) => row.result === word)) ?? unread.result,
    aligned: valid.map((row) => row.domain),
    signed: valid.flatMap(({ row, signature, domain }) => {
      // A key in testing mode commits its domain to nothing (RFC 6376 §3.6.1). That the mail passes DMARC by it, as it does
      // elsewhere, lets it be read; an order needs more.
      const form = row.status.testing === true ? undefined : formVerified(mail, signature, row);
      return form ? [{ domain, form }] : [];
    }),
    undecided: outcomes.filter((row) => row.ours && row.result === "temperror").map((row) => row.domain),
  };
}

/** Results by priority: of several, the first in this list counts. */
const WORDS = ["pass", "temperror", "fail", "policy", "neutral"];

/**
 * Returns the mail as the verifier reads it: with CRLF line ends, in small chunks that block nobody, and ended by the
 * signal.
 */
export function streamOf(mail: Envelope, left_out: Set<HeaderField>, signal: AbortSignal): Readable {
  return Readable.from(pieces(mail, left_out, signal), { objectMode: false });
}

/** Returns whether checking these signatures is an amount of work that one mail may cause. */
export function isBearable(mail: Envelope, fields: HeaderField[]): boolean {
  const { complete, problem } = mail.headers;
  const readable = fields.every((field) => isWorthIt(field) && hasKnownForm(field));
  return complete && problem === null && !hasEndlessLine(mail) && readable;
}

/**
 * Returns the result of a signature. One that covers only part of the body does not count: anything may have been added
 * behind that (RFC 6376 §8.2).
 */
function outcomeOf(row: DKIMResult): string {
  return row.status.result === "pass" && row.canonBodyLengthLimited ? "policy" : row.status.result;
}

/**
 * Returns the signatures worth checking: of limited size, in a known form, over the whole body, not by SHA-1 (RFC 8301
 * §3.1).
 */
function chooseSignatures(fields: HeaderField[], from: string): Set<HeaderField> {
  const usable = fields.filter(
    (field) =>
      isWorthIt(field) &&
      hasKnownForm(field) &&
      tagValue(field.value, "l") === undefined &&
      tagValue(field.value, "a") !== "rsa-sha1",
  );
  const rank = ({ value }: HeaderField): number => {
    const domain = tagValue(value, "d") ?? "";
    return isSameDomain(domain, from) ? 0 : inSameHands(domain, from) ? 1 : 2;
  };
  return new Set(usable.sort((one, other) => rank(one) - rank(other)).slice(0, MAX_SIGNATURES));
}

function isWorthIt(field: HeaderField): boolean {
  const names = (tagValue(field.value, "h") ?? "").split(":");
  return !isTooLong(field) && names.length <= MAX_SIGNED_NAMES;
}

function isTooLong({ start, end }: HeaderField): boolean {
  return end - start > MAX_SIGNATURE_BYTES;
}

/**
 * Returns whether c= has a known value. The verifier throws at some others (`c=/relaxed`), which would cost the mail
 * its good signatures.
 */
function hasKnownForm({ value }: HeaderField): boolean {
  return tagsNamed(value, "c").every((form) => /^(simple|relaxed)(\s*\/\s*(simple|relaxed))?$/.test(form));
}

/** Returns the value of a tag of a signature, in lower case. */
export function tagValue(value: string, name: string): string | undefined {
  return tagsNamed(value, name)[0];
}

function tagsNamed(value: string, name: string): string[] {
  return value
    .split(";")
    .map((part) => part.split("=", 2))
    .filter(([key]) => key?.trim().toLowerCase() === name)
    .map(([, word = ""]) => word.trim().toLowerCase());
}

function hasEndlessLine({ raw, headers }: Envelope): boolean {
  for (let start = headers.body_offset; raw.length - start > MAX_LINE_BYTES;) {
    const end = raw.lastIndexOf(0x0a, start + MAX_LINE_BYTES);
    if (end < start) return true;
    start = end + 1;
  }
  return false;
}

async function* pieces(
  { raw, headers }: Envelope,
  left_out: Set<HeaderField>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const endings = lineEndings();
  let at = 0;
  for (const field of headers.fields) {
    if (!left_out.has(field)) continue;
    yield endings(raw.subarray(at, field.start));
    at = field.end;
  }
  while (at < raw.length && !signal.aborted) {
    yield endings(raw.subarray(at, at + PIECE_BYTES));
    at += PIECE_BYTES;
    await nextTurn();
  }
}

/** Makes every bare LF a CRLF. The verifier would do so too, but line by line, a hundred times slower. */
function lineEndings(): (piece: Uint8Array) => Uint8Array {
  let last = 0;
  return (piece) => {
    const whole = hasBareLf(piece, last) ? withCrlf(piece, last) : piece;
    last = piece.at(-1) ?? last;
    return whole;
  };
}

function hasBareLf(piece: Uint8Array, before: number): boolean {
  for (let lf = piece.indexOf(0x0a); lf >= 0; lf = piece.indexOf(0x0a, lf + 1)) {
    if ((lf === 0 ? before : piece[lf - 1]) !== 0x0d) return true;
  }
  return false;
}

function withCrlf(piece: Uint8Array, before: number): Uint8Array {
  const whole = new Uint8Array(piece.length * 2);
  let size = 0;
  let last = before;
  for (const byte of piece) {
    if (byte === 0x0a && last !== 0x0d) whole[size++] = 0x0d;
    whole[size++] = byte;
    last = byte;
  }
  return whole.subarray(0, size);
}
