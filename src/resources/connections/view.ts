import { asAmount } from "../../lib/money.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { ruledConnectionsOf, toolServersOf } from "../../db/inbox-columns.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { asksFirstOf } from "./ask-first.ts";
import { fallbacksOf } from "./fallbacks.ts";
import { type ConnectionKind, isModelKind, KIND_INFO } from "./kinds.ts";
import { hasCredential } from "./sealed.ts";
import { toolServerNames } from "./targets.ts";

type ConnectionView = ReturnType<typeof viewConnection>;

/** Returns what shows connections of one account, with the inboxes and connections that use each. */
export async function connectionViewer(
  app: App,
  db: Db,
  user_id: string,
): Promise<(row: ConnectionRow) => ConnectionView> {
  const uses = await countUses(db, user_id);
  const servers = await toolServerNames(db, user_id);
  const names = new Map([...servers].map(([name, id]) => [id, name]));
  return (row) =>
    viewConnection(app, row, {
      used_by_inboxes: uses.get(row.id) ?? 0,
      target: isModelKind(row.kind) ? null : (names.get(row.id) ?? row.kind),
    });
}

function viewConnection(
  app: App,
  row: ConnectionRow,
  { used_by_inboxes, target }: { used_by_inboxes: number; target: string | null },
) {
  const has_credential = hasCredential(app, row);
  return {
    id: row.id,
    kind: row.kind,
    category: categoryOf(row),
    label: row.label,
    target,
    model: row.model,
    base_url: row.base_url,
    fallback_connection_id: fallbacksOf(row)[0] ?? null,
    fallback_connection_ids: fallbacksOf(row),
    monthly_budget: asAmount(row.monthly_budget),
    config: row.config === null ? null : storedJson<Record<string, unknown> | null>(row.config, null),
    ask_tools: asksFirstOf(row),
    unconfirmed: target !== null && row.unconfirmed === 1,
    status: row.status,
    credential_hint: row.credential_hint,
    has_credential,
    auth: has_credential ? row.auth : ("none" as const),
    expires_at: row.expires_at,
    last_tested_at: row.last_tested_at,
    last_error: row.last_error,
    used_by_inboxes,
    created: row.created,
    updated: row.updated,
  };
}

/** A kind that a damaged disk has left is none that a run would use. */
function categoryOf({ kind }: ConnectionRow): (typeof KIND_INFO)[ConnectionKind]["category"] {
  return Object.hasOwn(KIND_INFO, kind) ? KIND_INFO[kind as ConnectionKind].category : "integration";
}

/** The number of inboxes that use each connection of an account: for their model, in a rule, or among their tools. */
async function countUses(db: Db, user_id: string): Promise<Map<string, number>> {
  const inboxes = await db
    .selectFrom("inboxes")
    .select(["default_connection_id", "mcp_connection_ids", "rules"])
    .where("user_id", "=", user_id)
    .execute();
  const uses = new Map<string, number>();
  for (const inbox of inboxes) {
    const ids = new Set([...toolServersOf(inbox), ...ruledConnectionsOf(inbox)]);
    if (inbox.default_connection_id !== null) ids.add(inbox.default_connection_id);
    for (const id of ids) uses.set(id, (uses.get(id) ?? 0) + 1);
  }
  return uses;
}
