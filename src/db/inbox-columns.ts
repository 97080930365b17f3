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

/** The addresses and domains whose mail may instruct it; null where a damaged disk has left none that can be read. */
export function storedAllowlist({ allowlist_senders }: Pick<InboxRow, "allowlist_senders">): string[] | null {
  const listed = storedJson<unknown>(allowlist_senders, null);
  return Array.isArray(listed) ? listed.filter((entry) => typeof entry === "string") : null;
}

/** The same for whoever decides by it. Throws: without entries it would let everybody in, and with others lock people out. */
export function allowlistOf(inbox: Pick<InboxRow, "allowlist_senders">): string[] {
  const listed = storedAllowlist(inbox);
  if (listed) return listed;
  throw new Error(
    "The list of allowed senders of an inbox cannot be read: the database is damaged there. Set its allowlist_senders anew.",
  );
}

/** Which tools an inbox may use; null for all. */
export function scopeOf({ scope }: Pick<InboxRow, "scope">): StoredScope | null {
  return scope === null ? null : storedJson<StoredScope>(scope, { targets: [], autonomous: [] });
}
