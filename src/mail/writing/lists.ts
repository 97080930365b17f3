/** How many one letter names. */
export const MOST_LISTED = 50;

/** Writes the first of `count` things as a list in Markdown, and how many more there are. */
export function listed(lines: string[], count: number): string {
  const rest = count - lines.length;
  return [
    lines.map((line) => `- ${line}`).join("\n"),
    ...(rest > 0 ? [`And ${rest} more, which your activity lists.`] : []),
  ].join("\n\n");
}
