import type { ConnectionRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** Stands for every tool that may change something. */
const EACH_CHANGE = "*";

/** The tools of a connection that its owner is asked about first. A damaged list asks about everything that changes something. */
export function asksFirstOf({ ask_tools }: Pick<ConnectionRow, "ask_tools">): string[] {
  const listed = storedJson<unknown>(ask_tools, null);
  return Array.isArray(listed) ? listed.filter((name) => typeof name === "string") : [EACH_CHANGE];
}

/** Whether a tool is called only once the owner of its connection has consented. */
export function isAskedFirst(
  connection: Pick<ConnectionRow, "ask_tools">,
  { name, read_only }: { name: string; read_only: boolean },
): boolean {
  const listed = asksFirstOf(connection);
  return listed.includes(name) || (!read_only && listed.includes(EACH_CHANGE));
}
