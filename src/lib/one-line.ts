/** What ends a line, turns letters round or is an order to a terminal: others may have written it. */
export const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text on one line, without blanks around it, and without halves of characters: those could not be stored. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
}
