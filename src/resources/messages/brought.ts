import type { MessageRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { rowsLost } from "./stored-bytes.ts";

/** What a call came with, as its job and its message say it: a row that is lost cannot say it itself. */
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

/** The same, as it is stored with the message: its work may be done again long after its job has ended. */
export function storedBrought(material: Parameters<typeof broughtBy>[0]): string | null {
  const brought = broughtBy(material);
  return brought === undefined ? null : JSON.stringify(brought);
}

/** What a message says that it came with; undefined where it says nothing. */
export function broughtWith({ brought }: Pick<MessageRow, "brought">): Brought | undefined {
  return brought === null ? undefined : storedJson<Brought | undefined>(brought, undefined);
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
