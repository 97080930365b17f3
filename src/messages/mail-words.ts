import { createHash } from "node:crypto";
import { readHeaderDate } from "../mail/header-date.ts";
import { decodeWords, type MailHeaders, messageIds } from "../mail/headers.ts";

/** A body is hashed in pieces, so that no copy of a large one is made. */
const PIECE_BYTES = 65_536;
const BLANKS = /[ \t\r\n]+/g;

/** What a mail says by itself. */
export interface MailWords {
  subject: string;
  rfc_message_id: string | null;
  /** Of In-Reply-To and References, the closest first. */
  parent_ids: string[];
  hop: number;
  body_hash: string;
  /** Is equal for mails that are the same one, though they have no Message-ID (decision L.6). */
  said_hash: string;
  /** Unix seconds; undefined where the Date field names no moment for certain. */
  date: number | undefined;
}

/** Reads them; `from_address` is the author, or empty. */
export function wordsOf(raw: Uint8Array, headers: MailHeaders, from_address: string): MailWords {
  const references = messageIds(headers.get("references") ?? "").toReversed();
  const subject = subjectOf(headers);
  const body_hash = bodyHash(raw.subarray(headers.body_offset), subject);
  const said = [headers.get("date") ?? "", subject].map((text) => text.replaceAll(BLANKS, ""));
  return {
    subject,
    rfc_message_id: messageIds(headers.get("message-id") ?? "")[0] ?? null,
    parent_ids: [...messageIds(headers.get("in-reply-to") ?? ""), ...references],
    hop: Number.parseInt(headers.get("x-mailwright-hop") ?? "0", 10) || 0,
    body_hash,
    said_hash: sha256([from_address, ...said, body_hash].join("\n")),
    date: readHeaderDate(headers.get("date") ?? ""),
  };
}

/**
 * Of a mail without a body the subject is what is said. Relaxed signatures leave white space and line ends to whoever
 * sends the mail on (RFC 6376 §3.4.4), so the hash leaves them out.
 */
function bodyHash(body: Uint8Array, subject: string): string {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const hash = createHash("sha256");
  let blank = true;
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const text = bytes.toString("latin1", at, at + PIECE_BYTES).replaceAll(BLANKS, "");
    if (text !== "") blank = false;
    hash.update(text, "latin1");
  }
  return blank ? sha256(subject.replaceAll(BLANKS, "")) : hash.digest("hex");
}

/** A fold leaves more white space than there was before; how much says nothing. */
function subjectOf(headers: MailHeaders): string {
  return decodeWords((headers.get("subject") ?? "").replaceAll(BLANKS, " ")).trim();
}

function sha256(data: string): string {
  return createHash("sha256").update(data).digest("hex");
}
