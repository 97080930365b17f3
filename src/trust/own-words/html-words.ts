import { stripHiddenCharacters } from "./hidden-characters.ts";
import { readHtml } from "./html-text.ts";
import { unmarked } from "./inserted.ts";

/** Returns all words of a text as this server reads them if it comes as the HTML of a mail. */
export function wordsInHtml(text: string): string {
  if (!/[<&]/.test(text)) return text;
  const { pieces, signature } = readHtml(stripHiddenCharacters(text).text);
  return [...pieces.map((piece) => piece.text), signature].map(unmarked).join("\n");
}
