/** Writes words that others chose as code in Markdown, so that they are no link and no format there. */
export function asCode(text: string): string {
  return `\`${text
    .replaceAll("`", "'")
    .replaceAll(/[\s\p{C}]+/gu, " ")
    .trim()}\``;
}

/** What is left as it is: code, and addresses, which have no marks of Markdown. */
const AS_IT_IS = /(`[^`\n]{1,300}`|https?:\/\/\S+)/;

/** Writes a sentence in Markdown, so that every sign of it is shown as it is. Code between backticks stays code. */
export function asText(sentence: string): string {
  return sentence
    .split(AS_IT_IS)
    .map((piece, index) => (index % 2 === 1 ? piece : piece.replaceAll(/[\\*_<>[\]~|#&]/g, "\\$&")))
    .join("")
    .replaceAll(/^([ \t]{0,20})([-+])|^([ \t]{0,20}\d{1,9})([.)])/gm, "$1$3\\$2$4");
}
