/** Characters of others that end a line, turn letters round or are an order to a terminal. */
export const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text on one line, without blanks around it, and without halves of characters: those could not be stored. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
}
