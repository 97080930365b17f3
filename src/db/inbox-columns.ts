import { storedJson } from "../lib/stored-json.ts";
import type { InboxRow } from "./schema.ts";

/** What an inbox may use: `targets` of null, as no scope at all, is everything. */
export interface StoredScope {
  targets: string[] | null;
  autonomous: string[];
}

/** The ids of the tool servers of an inbox. */
export function toolServersOf({ mcp_connection_ids }: Pick<InboxRow, "mcp_connection_ids">): string[] {
  return storedJson<string[]>(mcp_connection_ids, []);
}

/** The addresses and domains whose mail may instruct it. */
export function allowlistOf({ allowlist_senders }: Pick<InboxRow, "allowlist_senders">): string[] {
  return JSON.parse(allowlist_senders) as string[];
}

/** Which tools an inbox may use; null for all. */
export function scopeOf({ scope }: Pick<InboxRow, "scope">): StoredScope | null {
  return scope === null ? null : storedJson<StoredScope>(scope, { targets: [], autonomous: [] });
}
