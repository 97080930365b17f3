/** The set of the words in a text, which have single blanks between them. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(" "));
}

/** The words that stand before something, without what opens a bracket or a format right before that. */
export function wordsBefore(text: string): string[] {
  const open = text.replace(/[<([*_]{1,5}$/, "");
  return open.split(/\s+/).filter((word) => word !== "");
}

/** A word without what is no letter in front of it, such as a bracket. */
export function bareWord(word: string): string {
  return word.replace(/^[^\p{L}]{1,5}/u, "");
}
