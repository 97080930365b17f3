/**
 * More than 30 combining marks on one letter. No word has them (Unicode Standard Annex 15, stream-safe text), and to put
 * them in order takes the square of their number.
 */
const MANY_MARKS = /(\p{M}{31,})/u;
/** A shorter text has fewer marks than that. */
const SHORT_CHARS = 31;

/** Returns a text in a Unicode normal form, in linear time: where a letter has more marks than any word, they stay as they are. */
export function normalForm(form: "NFC" | "NFD" | "NFKC" | "NFKD", text: string): string {
  if (text.length < SHORT_CHARS) return text.normalize(form);
  const parts = text.split(MANY_MARKS);
  return parts.map((part, index) => (index % 2 === 0 ? part.normalize(form) : part)).join("");
}
