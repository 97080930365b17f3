/**
 * Characters that end a line in other contexts and are a space in mail, where only CRLF and LF do (RFC 5322 §2.1).
 * Otherwise the name of a correspondent could begin a new line in what the owner's mail program writes above a quote.
 */
// oxlint-disable-next-line no-control-regex -- FS, GS and RS end a line to some.
export const SEPARATORS = /[\r\v\f\x1c-\x1e\u0085\u2028\u2029]/g;
/**
 * Characters that draw nothing (Unicode's list: zero-width, bidi, tags, variation selectors, fillers) or are not text
 * at all.
 */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cc}\uFFF9-\uFFFB]/gu;
const EMOJI = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Emoji_Component}\uFE0F]/u;
/** Scripts that spell words with zero-width joiners. */
const JOINED =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Mongolian}]/u;

/**
 * Returns a text as a reader sees it, with `
 * ` as its only line end, and the number of characters removed.
 */
export function stripHiddenCharacters(text: string): { text: string; removed: number } {
  let removed = 0;
  const lines = text.replaceAll("\r\n", "\n").replaceAll(SEPARATORS, " ");
  const visible = lines.replace(INVISIBLE, (char, at: number, whole: string) => {
    if (char === "\n" || char === "\t" || spells(char, at, whole)) return char;
    removed += 1;
    return "";
  });
  return { text: visible, removed };
}

/**
 * Returns a text in which every character is seen that a reader could not see, or not tell from another one: it is written as its
 * code point, in brackets that a text itself cannot have.
 */
export function withHiddenShown(text: string): string {
  return text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replaceAll(/[\u27e8\u27e9]/g, asCodePoint)
    .replaceAll(SEPARATORS, asCodePoint)
    .replaceAll(UNSEEN, (char, at: number, whole: string) =>
      char === "\n" || spells(char, at, whole) ? char : asCodePoint(char),
    )
    .replaceAll(PILED, (marks) => marks.replaceAll(/\p{M}/gu, asCodePoint));
}

/** What draws nothing, is no text, or is a blank of another kind than that of the keyboard; and a tab, as it may be as wide as a page. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\uFFF9-\uFFFC\u2800]|(?! )\p{Zs}/gu;
/** More marks above each other than any script has, by which a letter can cover the lines around it. */
const PILED = /(?<=\p{M}{4})\p{M}+/gu;

function asCodePoint(char: string): string {
  const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `\u27e8U+${code}\u27e9`;
}

/** Returns a text as a reader sees it on one line, such as a subject. */
export function visibleLine(text: string): string {
  return stripHiddenCharacters(text).text.replaceAll(/\s+/g, " ").trim();
}

/** Returns the beginning of a sentence about that number. */
export function hiddenInWords(count: number): string {
  return count === 1 ? "1 invisible character was" : `${count} invisible characters were`;
}

/**
 * Returns whether an invisible character is needed: emoji sequences and some scripts need joiners and variation
 * selectors between visible characters.
 */
function spells(char: string, at: number, whole: string): boolean {
  if (!"\u200C\u200D\uFE0E\uFE0F".includes(char)) return false;
  const is_selector = char === "\uFE0E" || char === "\uFE0F";
  // Only the last of many joiners in a row can join anything.
  if (!is_selector && whole.charAt(at + 1) === char) return false;
  const before = codePointBefore(whole, at);
  if (is_selector) return EMOJI.test(before) && before !== char;
  const after = String.fromCodePoint(whole.codePointAt(at + 1) ?? 0x20);
  if (char === "\u200D" && EMOJI.test(before) && EMOJI.test(after)) return true;
  return JOINED.test(before) && JOINED.test(after);
}

function codePointBefore(text: string, at: number): string {
  const unit = text.charCodeAt(at - 1);
  const is_low_surrogate = unit >= 0xdc00 && unit <= 0xdfff;
  return text.slice(Math.max(0, at - (is_low_surrogate ? 2 : 1)), at);
}
