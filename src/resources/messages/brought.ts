import { rowsLost } from "./stored-bytes.ts";

/** What a call came with, as its job says it: a row that is lost cannot say it itself. */
export interface Brought {
  content: boolean;
  files: number;
}

export function broughtBy({
  content,
  files,
}: {
  content: string | null;
  files: unknown[];
}): Brought | undefined {
  const brought = { content: content !== null, files: files.length };
  return brought.content || brought.files > 0 ? brought : undefined;
}

/** Throws where other rows are found than those that a call came with: without them it would be another one. */
export function refuseOthers(
  brought: Brought | undefined,
  { content, files }: { content: object | undefined; files: unknown[] },
): void {
  if (!brought) return;
  if (brought.content === (content !== undefined) && brought.files === files.length) return;
  throw rowsLost();
}
