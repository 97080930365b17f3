import { storedJson } from "../lib/stored-json.ts";
import type { InboxRow } from "./schema.ts";

/** What an inbox lets tools do; none (null) lets them do all. */
export interface Scope {
  /** Targets that the inbox may use; with an empty list only the model works, null allows every target. */
  targets: string[] | null;
  /** Targets whose writing tools may run on untrusted mail without being named. */
  autonomous: string[];
}

/** Returns the ids of the MCP connections whose tools an inbox uses. */
export function toolServersOf({ mcp_connection_ids }: Pick<InboxRow, "mcp_connection_ids">): string[] {
  return storedJson<string[]>(mcp_connection_ids, []);
}

/** Returns the ids of the model connections that the rules of an inbox name; none where the rules are damaged. */
export function ruledConnectionsOf({ rules }: Pick<InboxRow, "rules">): string[] {
  const stored = storedJson<unknown>(rules, []);
  if (!Array.isArray(stored)) return [];
  return stored.flatMap((rule: { do?: { connection_id?: unknown } } | null) => {
    const id = rule?.do?.connection_id;
    return typeof id === "string" ? [id] : [];
  });
}

/** Returns the addresses and domains whose mail may instruct the inbox; null where the stored list is damaged. */
export function storedAllowlist({ allowlist_senders }: Pick<InboxRow, "allowlist_senders">): string[] | null {
  const listed = storedJson<unknown>(allowlist_senders, null);
  return Array.isArray(listed) ? listed.filter((entry) => typeof entry === "string") : null;
}

/**
 * Returns the allowlist for decisions on authority. Throws where it is damaged: an empty list would let everybody in,
 * and a partial one would lock people out.
 */
export function allowlistOf(inbox: Pick<InboxRow, "allowlist_senders">): string[] {
  const listed = storedAllowlist(inbox);
  if (listed) return listed;
  throw new Error(
    "The list of allowed senders of an inbox cannot be read: the database is damaged there. Set its allowlist_senders anew.",
  );
}

/** Returns which tools an inbox may use; null for all. A damaged scope allows none. */
export function scopeOf({ scope }: Pick<InboxRow, "scope">): Scope | null {
  return scope === null ? null : storedJson<Scope>(scope, { targets: [], autonomous: [] });
}
