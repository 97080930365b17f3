/** Returns texts as a sentence lists them: "a, b and c". */
export function allOf(texts: string[], word: "and" | "or"): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} ${word} ${last}`;
}
