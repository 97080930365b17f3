/** Writes words that others chose as code in Markdown, so that they are no link and no format there. */
export function asCode(text: string): string {
  return `\`${text
    .replaceAll("`", "'")
    .replaceAll(/[\s\p{C}]+/gu, " ")
    .trim()}\``;
}
