/** What others chose is nothing but text in the Markdown of a letter or an answer: as code it is no link and no format. */
export function asCode(text: string): string {
  return `\`${text
    .replaceAll("`", "'")
    .replaceAll(/[\s\p{C}]+/gu, " ")
    .trim()}\``;
}
