import { urlOf } from "../../lib/web-address.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { oneSpelling } from "../../net/one-spelling.ts";
import { isProgramUrl } from "./programs.ts";

/** Stands for every tool that may change something. */
const EACH_CHANGE = "*";

/** The tools of a connection that its owner is asked about first. A damaged list asks about everything that changes something. */
export function asksFirstOf({ ask_tools }: Pick<ConnectionRow, "ask_tools">): string[] {
  const listed = storedJson<unknown>(ask_tools, null);
  return Array.isArray(listed) ? listed.filter((name) => typeof name === "string") : [EACH_CHANGE];
}

type Marked = Pick<ConnectionRow, "kind" | "base_url" | "ask_tools" | "unconfirmed">;

/**
 * The tools that an account is asked about first wherever a connection leads. Where an API key has had it lead, and nobody who is
 * signed in has confirmed that, these are all that the account has marked, and each change: a server goes by more names than can be
 * compared, so that a key could reach a marked one by another.
 */
export function asksFirstAt(rows: readonly Marked[], connection: Marked): string[] {
  if (connection.unconfirmed === 0) return marksOfServer(rows, connection);
  const marked = rows.flatMap(asksFirstOf);
  return marked.length === 0 ? [] : [...new Set([...marked, EACH_CHANGE])];
}

/** The tools that are marked at a server, by whichever connection of the account. */
export function marksOfServer(
  rows: readonly Marked[],
  connection: Pick<ConnectionRow, "kind" | "base_url">,
): string[] {
  const server = serverOf(connection);
  return [...new Set(rows.filter((row) => serverOf(row) === server).flatMap(asksFirstOf))];
}

/** What a connection leads to: a program, a host with its port, as its path can be spelled in many ways, or the service of an integration. */
export function serverOf({ kind, base_url }: Pick<ConnectionRow, "kind" | "base_url">): string {
  if (kind !== "mcp" || base_url === null) return kind;
  const url = isProgramUrl(base_url) ? null : urlOf(base_url);
  return url === null ? base_url : `${oneSpelling(url.hostname)}:${url.port || url.protocol}`;
}

/** Whether a tool is called only once the owner of its connection has consented. */
export function isAskedFirst(
  asks_first: readonly string[],
  { name, read_only }: { name: string; read_only: boolean },
): boolean {
  return asks_first.includes(name) || (!read_only && asks_first.includes(EACH_CHANGE));
}
