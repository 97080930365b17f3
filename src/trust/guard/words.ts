/** Returns the set of words in a text that single spaces separate. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(" "));
}

/** Returns the words of the text before a match, without opening brackets or formatting right before it. */
export function wordsBefore(text: string): string[] {
  const open = text.replace(/[<([*_]{1,5}$/, "");
  return open.split(/\s+/).filter((word) => word !== "");
}

/** Returns a word without leading characters that are not letters, such as a bracket. */
export function bareWord(word: string): string {
  return word.replace(/^[^\p{L}]{1,5}/u, "");
}
