/** Returns the letters and numbers of a text in lower case, for comparison. */
export function bareLetters(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
