import { decodeWords } from "../../mail/reading/headers.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";

/** Twice: what is handed on is often decoded on the way, and once more at its end. */
const DECODINGS = 2;
/** What NFKC would change, and some more. */
const NOT_PLAIN = /(?!\p{ASCII})\p{Changes_When_NFKC_Casefolded}/gu;
const NAMED: Record<string, string> = {
  period: ".",
  sol: "/",
  bsol: "\\",
  colon: ":",
  commat: "@",
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};

/** What was found for letters before, of which some thousands have a plainer form: to find it anew takes longer. */
const known = new Map<string, string>();

function plainest(char: string): string {
  let plain = known.get(char);
  if (plain === undefined) known.set(char, (plain = char.normalize("NFKC")));
  return plain;
}

let last = { of: "", read: "" };

/**
 * A text as programs read an address: decoded, in its plainest letters (UTS #46), without what nobody sees or needs
 * (RFC 5322 §3.2.4). The same text is asked for more than once, so the last one is kept.
 */
export function asRead(text: string): string {
  if (last.of !== text) last = { of: text, read: readAnew(text) };
  return last.read;
}

function readAnew(text: string): string {
  let plain = text;
  for (let nth = 0; nth < DECODINGS; nth += 1) plain = decoded(plain);
  // One by one: many marks on one letter would take the square of their number.
  plain = stripHiddenCharacters(plain).text.replaceAll(NOT_PLAIN, plainest);
  return plain
    .replaceAll(/[\u3002\uFF61]/g, ".")
    .replaceAll('"', "")
    .replaceAll("\\", "/");
}

function decoded(text: string): string {
  const plain = wordsDecoded(text)
    .replaceAll(ESCAPED, (whole, four?: string, some?: string, two?: string) =>
      charOf(whole, "", four ?? some ?? two),
    )
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (codes) => Buffer.from(codes.replaceAll("%", ""), "hex").toString());
  return withoutEntities(plain);
}

/** With the characters that HTML and XML write by number or name, as far as addresses need them. */
export function withoutEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(period|sol|bsol|colon|commat|amp|lt|gt|quot|apos));?/gi,
    (whole, decimal?: string, hex?: string, name = "") =>
      NAMED[String(name).toLowerCase()] ?? charOf(whole, decimal, hex),
  );
}

/** As in JSON, and in most languages of programs. */
const ESCAPED = /(?<!\\)\\+(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2}))/gi;
const WORD = /=\?([^?*]{1,40})(?:\*[^?]{0,40})?\?([bq])\?([^?]*)\?=/gi;

/** Encoded words (RFC 2047), of sets that nobody knows and with blanks in them as well: mail programs guess. */
function wordsDecoded(text: string): string {
  if (!text.includes("=?")) return text;
  const plain = text.replaceAll(WORD, (_whole, charset: string, form: string, data: string) => {
    const blank = /^q$/i.test(form) ? "_" : "";
    return `=?${knownSet(charset)}?${form}?${data.replaceAll(/\s/g, blank)}?=`;
  });
  return decodeWords(plain);
}

function knownSet(charset: string): string {
  try {
    return new TextDecoder(charset.trim() as Bun.Encoding).encoding;
  } catch {
    return "utf-8";
  }
}

function charOf(whole: string, decimal = "", hex = ""): string {
  const code = decimal === "" ? Number.parseInt(hex, 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}
