import { decodeCharset } from "./charsets.ts";
import { type AddressList, type Mailbox, parseAddressList } from "./address-list.ts";
import { type HeaderField, readHeaderBlock } from "./header-block.ts";

export interface MailHeaders {
  fields: readonly HeaderField[];
  /** The value of the first field of that name, in upper or lower case. */
  get(name: string): string | undefined;
  all(name: string): string[];
  /** Bytes of the header block, its closing empty line included. */
  size: number;
  /** Where the body starts in the raw mail. */
  body_offset: number;
  /** False when the block is over MAX_HEADER_BYTES or MAX_HEADER_LINES: then only its beginning was read. */
  complete: boolean;
  /** Why two readers could see different fields in it, as part of a sentence; null if they cannot. */
  problem: string | null;
}

export type FromMailbox = ({ ok: true } & Mailbox) | { ok: false; problem: string };

export const MAX_HEADER_BYTES = 65_536;
export const MAX_HEADER_LINES = 2_000;
/** No honest mail has passed more servers than this: it is going in circles. */
export const MAX_RECEIVED_FIELDS = 30;

/** Reads only the header block, from any bytes; of a block over the limits only the part within them. */
export function readHeaders(raw: Uint8Array): MailHeaders {
  const limits = { bytes: MAX_HEADER_BYTES, lines: MAX_HEADER_LINES };
  const { fields, size, lines, problem } = readHeaderBlock(raw, limits);
  const byName = Map.groupBy(fields, (field) => field.name);
  return {
    fields,
    get: (name) => byName.get(name.toLowerCase())?.[0]?.value,
    all: (name) => (byName.get(name.toLowerCase()) ?? []).map((field) => field.value),
    size,
    body_offset: size,
    complete: size <= MAX_HEADER_BYTES && lines <= MAX_HEADER_LINES,
    problem,
  };
}

/**
 * Returns the one author of a mail, or a sentence on why there is none that can be trusted; the mail is then refused.
 */
export function fromMailbox(headers: MailHeaders): FromMailbox {
  if (!headers.complete)
    return { ok: false, problem: "The header of the mail is too large; send fewer fields." };
  const [value, ...others] = headers.all("from");
  if (value === undefined) return { ok: false, problem: "The mail has no From field." };
  if (others.length > 0) return { ok: false, problem: "The mail has more than one From field." };
  const list = mailboxes(value);
  if (!list.ok) return { ok: false, problem: `The From field cannot be read. ${list.problem}` };
  if (list.groups > 0) return { ok: false, problem: "The From field names a group; one address is needed." };
  const [author, ...more] = list.mailboxes;
  if (!author) return { ok: false, problem: "The From field holds no address." };
  if (more.length > 0) return { ok: false, problem: "The From field holds more than one address." };
  return { ok: true, ...author };
}

/** Returns the addresses of a To, Cc, Reply-To or From value, those inside groups too, with their names decoded. */
export function mailboxes(value: string): AddressList {
  const list = parseAddressList(value);
  if (!list.ok) return list;
  const decoded = list.mailboxes.map(({ address, name }) => ({ address, name: decodeWords(name) }));
  return { ...list, mailboxes: decoded };
}

/** Returns the number of servers that have handled the mail (Received fields). */
export function receivedCount(headers: MailHeaders): number {
  return headers.all("received").length;
}

// RFC 5322 §3.6.4; an id is not longer than a line may be.
const MESSAGE_ID = /<([^<>\s]{1,998})>/g;

/** Returns the ids of a Message-ID, In-Reply-To or References value, without their angle brackets. */
export function messageIds(value: string): string[] {
  return Array.from(value.matchAll(MESSAGE_ID), ([, id = ""]) => id);
}

// RFC 2047 §2, with the language suffix of RFC 2231 §5.
const BLANK = /^[ \t\r\n]*$/;
const ENCODED_WORD = /=\?([^?*\s]{1,40})(?:\*[^?\s]{0,40})?\?([bq])\?([^?\s]*)\?=/gi;

/** Returns the text of a value with its encoded words decoded; a word in an unknown charset stays as written. */
export function decodeWords(value: string): string {
  let text = "";
  let end = 0;
  let open: { charset: string; bytes: Buffer[]; source: string } | undefined;
  const close = (): void => {
    if (open) text += decodeBytes(open);
    open = undefined;
  };
  for (const word of value.matchAll(ENCODED_WORD)) {
    const [source, charset = "", encoding = "", data = ""] = word;
    const between = value.slice(end, word.index);
    const joins = open !== undefined && BLANK.test(between);
    // RFC 2047 §6.2: white space between encoded words is not shown. Some programs cut a character across two words, so
    // words of one charset are decoded together.
    if (!joins || !mayBeCut(open?.charset, charset)) {
      close();
      text += joins ? "" : between;
    }
    open ??= { charset: charset.toLowerCase(), bytes: [], source: "" };
    open.bytes.push(encoding.toLowerCase() === "b" ? Buffer.from(data, "base64") : unquote(data));
    open.source += source;
    end = word.index + source.length;
  }
  close();
  // Only CRLF and LF end a line in mail, and neither can stand in a value.
  return (text + value.slice(end)).replace(/[\p{Cc}\u2028\u2029]/gu, " ");
}

/**
 * Returns whether a character may be cut across two words. Not in UTF-7, where the end of a word may end a run of
 * letters that nothing else closes (RFC 2152).
 */
function mayBeCut(open: string | undefined, charset: string): boolean {
  return open === charset.toLowerCase() && !/utf-?7$/.test(open);
}

function decodeBytes(word: { charset: string; bytes: Buffer[]; source: string }): string {
  return decodeCharset(Buffer.concat(word.bytes), word.charset) ?? word.source;
}

/** Decodes the Q encoding (RFC 2047 §4.2). */
function unquote(data: string): Buffer {
  const latin1 = data
    .replaceAll("_", " ")
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(latin1, "latin1");
}
