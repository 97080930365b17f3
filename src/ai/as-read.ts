import { stripHiddenCharacters } from "../mail/hidden-characters.ts";

/** Twice: what is handed on is often decoded on the way, and once more at its end. */
const DECODINGS = 2;
const NAMED: Record<string, string> = {
  period: ".",
  sol: "/",
  bsol: "\\",
  colon: ":",
  commat: "@",
  amp: "&",
};

/** A text as programs read an address: decoded, in its plainest letters (UTS #46), without what nobody sees or needs (RFC 5322 §3.2.4). */
export function asRead(text: string): string {
  let plain = text;
  for (let nth = 0; nth < DECODINGS; nth += 1) plain = decoded(plain);
  // One by one: many marks on one letter would take the square of their number.
  plain = stripHiddenCharacters(plain).text.replaceAll(/\P{ASCII}/gu, (char) => char.normalize("NFKC"));
  return plain
    .replaceAll(/[\u3002\uFF61]/g, ".")
    .replaceAll('"', "")
    .replaceAll("\\", "/");
}

function decoded(text: string): string {
  return text
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (codes) => Buffer.from(codes.replaceAll("%", ""), "hex").toString())
    .replaceAll(
      /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(period|sol|bsol|colon|commat|amp));?/gi,
      (whole, decimal?: string, hex?: string, name = "") =>
        NAMED[String(name).toLowerCase()] ?? charOf(whole, decimal, hex),
    );
}

function charOf(whole: string, decimal = "", hex = ""): string {
  const code = decimal === "" ? Number.parseInt(hex, 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}
