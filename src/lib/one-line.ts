/** Characters that end a line, reverse the direction of text, or control a terminal. */
export const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Returns a text as one trimmed line, without unpaired surrogates, which could not be stored. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
}
