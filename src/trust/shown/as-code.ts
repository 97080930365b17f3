/** Returns text from outside as Markdown code, so that it is neither a link nor formatting. */
export function asCode(text: string): string {
  return `\`${text
    .replaceAll("`", "'")
    .replaceAll(/[\s\p{C}]+/gu, " ")
    .trim()}\``;
}

/** Parts that stay unescaped: code, and URLs, which need no escapes. */
const AS_IT_IS = /(`[^`\n]{1,300}`|https?:\/\/\S+)/;

/** Returns a sentence as Markdown that shows every character as it is. Code between backticks stays code. */
export function asText(sentence: string): string {
  return sentence
    .split(AS_IT_IS)
    .map((piece, index) => (index % 2 === 1 ? piece : piece.replaceAll(/[\\*_<>[\]~|#&]/g, "\\$&")))
    .join("")
    .replaceAll(/^([ \t]{0,20})([-+])|^([ \t]{0,20}\d{1,9})([.)])/gm, "$1$3\\$2$4");
}
