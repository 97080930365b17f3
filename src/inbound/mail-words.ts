import { readHeaderDate } from "../mail/reading/header-date.ts";
import { decodeWords, type MailHeaders, messageIds } from "../mail/reading/headers.ts";
import { sha256 } from "../lib/sha256.ts";

/** A body is hashed in pieces, so that no copy of a large one is made. */
const PIECE_BYTES = 65_536;
const BLANKS = /[ \t\r\n]+/g;
/** By byte value: 0 for the characters of `BLANKS`, else 1. */
const TAKEN = Uint8Array.from({ length: 256 }, (_, byte) =>
  " \t\r\n".includes(String.fromCharCode(byte)) ? 0 : 1,
);

/** What a mail says about itself. */
export interface MailWords {
  subject: string;
  rfc_message_id: string | null;
  /** The ids in In-Reply-To and References, the closest first. */
  parent_ids: string[];
  hop: number;
  body_hash: string;
  /** Equal for mails that are the same one (decision L.6). */
  dedupe_key: string;
  /** Unix seconds; undefined if the Date field names no moment for certain. */
  date: number | undefined;
}

/** Returns what a mail says about itself; `from_address` is its author's, or empty. */
export function readMailWords(raw: Uint8Array, headers: MailHeaders, from_address: string): MailWords {
  const references = messageIds(headers.get("references") ?? "").toReversed();
  const rfc_message_id = messageIds(headers.get("message-id") ?? "")[0] ?? null;
  const subject = subjectOf(headers);
  const body = raw.subarray(headers.body_offset);
  return {
    subject,
    rfc_message_id,
    parent_ids: [...messageIds(headers.get("in-reply-to") ?? ""), ...references],
    hop: Number.parseInt(headers.get("x-mailwright-hop") ?? "0", 10) || 0,
    body_hash: sha256(isBlank(body) ? subject : body, "hex"),
    dedupe_key:
      rfc_message_id === null
        ? saidHash(headers, { from_address, subject, body })
        : dedupeKeyOfId(rfc_message_id, from_address),
    date: readHeaderDate(headers.get("date") ?? ""),
  };
}

/**
 * Returns the key by which two mails with a Message-ID are the same. It includes the sender, so that another sender's
 * mail never is the same.
 */
export function dedupeKeyOfId(rfc_message_id: string, sender: string): string {
  return `id:${rfc_message_id} ${sender}`;
}

/**
 * Returns whether the body is blank; such a mail says only what its subject does. This loop takes a tenth of the time
 * of `every` or an iterator.
 */
function isBlank(body: Uint8Array): boolean {
  let at = 0;
  while (at < body.length && isSpace(body[at] ?? 0)) at += 1;
  return at === body.length;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

/**
 * Returns a hash of what a mail says, without white space and line ends: relaxed signatures allow whoever sends the
 * mail on to change these (RFC 6376 §3.4.4).
 */
function saidHash(
  headers: MailHeaders,
  { from_address, subject, body }: { from_address: string; subject: string; body: Uint8Array },
): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const text of [from_address, headers.get("date") ?? "", subject])
    hash.update(`${text.replaceAll(BLANKS, "")}\n`);
  const taken = new Uint8Array(PIECE_BYTES);
  for (let at = 0; at < body.length; at += PIECE_BYTES)
    hash.update(taken.subarray(0, takeFrom(body.subarray(at, at + PIECE_BYTES), taken)));
  return hash.digest("hex");
}

/**
 * Copies the bytes that are not blank, and returns their number. Every byte is copied, but overwritten by the next
 * unless it counts: without a branch the processor cannot mispredict any.
 */
function takeFrom(piece: Uint8Array, taken: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < piece.length; at += 1) {
    const byte = piece[at] ?? 0;
    taken[count] = byte;
    count += TAKEN[byte] ?? 0;
  }
  return count;
}

/**
 * Returns the subject with each run of white space as one space: folding adds white space, and its amount means
 * nothing.
 */
function subjectOf(headers: MailHeaders): string {
  return decodeWords((headers.get("subject") ?? "").replaceAll(BLANKS, " ")).trim();
}
