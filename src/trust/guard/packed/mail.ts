import { decodeCharset, namesNoCharset } from "../../../mail/reading/charsets.ts";
import { readHeaders } from "../../../mail/reading/headers.ts";
import { readMimeValue } from "../../../mail/reading/mime-value.ts";
import { UUENCODED, uudecode } from "../../../mail/reading/uuencode.ts";
import { bytesOf, isText } from "./base64.ts";
import type { Part, Reading } from "./part.ts";

/** The field that says how the words of a mail are written, at the beginning of a line for any program. */
const ENCODED = /^[ \t]{0,9}content-transfer-encoding/im;
/** A set in which letters of ASCII may stand for others. */
const OTHER_SET = /charset[ \t]{0,9}\*?[ \t]{0,9}=?[ \t]{0,9}["']?(?:x-)?(?:unicode-1-1-)?utf-?7|charset\*/i;
/** A border between parts, whichever the header names (RFC 2046 §5.1.1). */
const BORDER = /\r?\n(?=--)|\r(?=--)/;
const AS_IT_IS = /^(?:7bit|8bit|binary)?$/;
const TEXT_TYPE = /^(?:text\/|message\/|multipart\/|$)/;
const HEAD_BYTES = 64;

/**
 * Reads the words of a mail, and of the parts and mails in it, as they are once decoded (RFC 2045 §6). A mail that programs may
 * decode differently is read no further, as if it were too long: who looks at it here could see other words than its recipient.
 */
export function readMail(text: string, max_chars: number): Reading | undefined {
  if (!ENCODED.test(text) && !OTHER_SET.test(text)) return undefined;
  if (text.length > max_chars) return { parts: [], chars: text.length };
  const parts: Part[] = [];
  let chars = text.length;
  for (const section of text.split(BORDER)) {
    const value = wordsOf(section.replace(/^--[^\r\n]*\r?\n?/, ""));
    if (value === undefined) return { parts: [], chars: Infinity };
    for (const one of value) {
      parts.push({ key: "body", value: one });
      chars += one.length;
    }
  }
  return { parts, chars };
}

/** The words of one part, where they are another text than what stands there; undefined if programs may read others. */
function wordsOf(section: string): string[] | undefined {
  if (!ENCODED.test(section) && !OTHER_SET.test(section)) return [];
  const bytes = Buffer.from(section.trimStart());
  const headers = readHeaders(bytes);
  if (!headers.complete || headers.problem !== null) return undefined;
  const content = bytes.subarray(headers.body_offset);
  const encodings = headers.all("content-transfer-encoding");
  const types = headers.all("content-type");
  if (encodings.length > 1 || types.length > 1) return undefined;
  const decoded = decodedBy((encodings[0] ?? "").trim().toLowerCase(), content);
  return decoded && inSet(decoded, { types, is_decoded: decoded !== content });
}

function decodedBy(encoding: string, content: Buffer): Buffer | undefined {
  if (AS_IT_IS.test(encoding)) return content;
  if (encoding === "base64") return bytesOf(content.toString("latin1"));
  if (encoding === "quoted-printable") return unquoted(content);
  return UUENCODED.test(encoding) ? Buffer.from(uudecode(content)) : undefined;
}

/** Decodes quoted-printable (RFC 2045 §6.7). */
function unquoted(content: Buffer): Buffer {
  const text = content
    .toString("latin1")
    .replaceAll(/=([0-9a-f]{2})|=[ \t]{0,99}\r?\n/gi, (_whole, hex?: string) =>
      hex === undefined ? "" : String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return Buffer.from(text, "latin1");
}

/** A text in the set that its part names, and as those read it who know of none. */
function inSet(
  bytes: Buffer,
  { types: [type = ""], is_decoded }: { types: string[]; is_decoded: boolean },
): string[] | undefined {
  const named = readMimeValue(type);
  if (named === undefined) return undefined;
  const { value, parameters } = named;
  if (!TEXT_TYPE.test(value) && !isText(bytes.subarray(0, HEAD_BYTES))) return [];
  const charset = parameters.get("charset") ?? "";
  const read = namesNoCharset(charset) ? bytes.toString() : decodeCharset(bytes, charset);
  if (read === undefined) return undefined;
  const plain = bytes.toString();
  // What stands there as it is has been looked at; a mail in it has a header of its own.
  const own = !is_decoded && !ENCODED.test(plain) ? [] : [plain];
  return [...new Set(read === plain ? own : [read, ...own])];
}
