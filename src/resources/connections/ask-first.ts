import type { ConnectionRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { isProgramUrl } from "./programs.ts";

/** Stands for every tool that may change something. */
const EACH_CHANGE = "*";

/** The tools of a connection that its owner is asked about first. A damaged list asks about everything that changes something. */
export function asksFirstOf({ ask_tools }: Pick<ConnectionRow, "ask_tools">): string[] {
  const listed = storedJson<unknown>(ask_tools, null);
  return Array.isArray(listed) ? listed.filter((name) => typeof name === "string") : [EACH_CHANGE];
}

type Marked = Pick<ConnectionRow, "kind" | "base_url" | "ask_tools">;

/**
 * The tools that an account is asked about first wherever a connection leads: those of all its connections to the same server, as
 * an API key can make another one to a server that wants no secret of it.
 */
export function asksFirstAt(rows: readonly Marked[], connection: Marked): string[] {
  const server = serverOf(connection);
  return [...new Set(rows.filter((row) => serverOf(row) === server).flatMap(asksFirstOf))];
}

/** What a connection leads to: a program, a host with its port, as its path can be spelled in many ways, or the service of an integration. */
export function serverOf({ kind, base_url }: Pick<ConnectionRow, "kind" | "base_url">): string {
  if (kind !== "mcp" || base_url === null) return kind;
  const url = isProgramUrl(base_url) ? null : URL.parse(base_url);
  return url === null ? base_url : `${url.hostname.replace(/\.$/, "")}:${url.port || url.protocol}`;
}

/** Whether a tool is called only once the owner of its connection has consented. */
export function isAskedFirst(
  asks_first: readonly string[],
  { name, read_only }: { name: string; read_only: boolean },
): boolean {
  return asks_first.includes(name) || (!read_only && asks_first.includes(EACH_CHANGE));
}
