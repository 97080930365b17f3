import { decodeCharset, namesNoCharset } from "../../../mail/reading/charsets.ts";
import { readHeaders } from "../../../mail/reading/headers.ts";
import { readMimeValue } from "../../../mail/reading/mime-value.ts";
import { UUENCODED, uudecode } from "../../../mail/reading/uuencode.ts";
import { bytesOf, isText } from "./base64.ts";
import type { Part, Reading } from "./part.ts";

/** The field that says how the words of a mail are written, at the beginning of a line for any program. */
const ENCODED = /^[ \t]*content-transfer-encoding/im;
const TYPED = /^[ \t]*content-type/im;
/** The name of a set, whatever stands between it and what says that it is one. */
const CHARSET = /charset([\s*=0-9"']*)([\w.:+-]*)/gi;
/** Sets in which every letter of ASCII is itself, wherever it stands. */
const WITH_ASCII =
  /^(?:|utf-?8|(?:us-?)?ascii|ansi_x3\.4-1968|iso-?8859-\d+(?:-[ei])?|latin-?\d+|windows-?\d+|cp(?:125\d|437|850|852|866|932|936|949|950)|koi8-[ru]|macintosh|gb2312|gbk|gb18030|big5(?:-hkscs)?|euc-(?:jp|kr|tw|cn)|shift[_-]?jis|ks_c_5601-1987|tis-620|unknown-8bit)$/i;
/** Lines that are joined without the blank at which they were parted (RFC 3676 §4.1). */
const JOINED = /delsp/i;
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
  if (!mayBeOther(text)) return undefined;
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

/** Whether the words of a mail, or of a part, may be others than those that stand there. */
function mayBeOther(text: string): boolean {
  if (ENCODED.test(text)) return true;
  return TYPED.test(text) && (JOINED.test(text) || namesOtherSet(text));
}

function namesOtherSet(text: string): boolean {
  for (const [, between = "", name = ""] of text.matchAll(CHARSET))
    if (between.includes("*") || (between.includes("=") && !WITH_ASCII.test(name))) return true;
  return false;
}

/** The words of one part, where they are another text than what stands there; undefined if programs may read others. */
function wordsOf(section: string): string[] | undefined {
  if (!mayBeOther(section)) return [];
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
    .replaceAll(/=([0-9a-f]{2})|=[ \t]*\r?\n/gi, (_whole, hex?: string) =>
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
  const words = read === plain ? own : [read, ...own];
  const joined = parameters.has("delsp") ? [read.replaceAll(/ \r?\n/g, "")] : [];
  return [...new Set([...words, ...joined])];
}
