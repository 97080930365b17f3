import { stripHiddenCharacters } from "./hidden-characters.ts";
import { readHtml } from "./html-text.ts";
import { unmarked } from "./inserted.ts";

/** Returns all words of a text as this server reads them if it comes as the HTML of a mail. */
export function wordsInHtml(text: string): string {
  if (!/[<&]/.test(text)) return text;
  const { pieces, signature } = readHtml(stripHiddenCharacters(text).text);
  const shown = [...pieces.map((piece) => piece.text), signature].map(unmarked).join("\n");
  // An entity may be a hidden character as well.
  return stripHiddenCharacters(shown).text;
}
