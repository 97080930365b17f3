import type { App } from "../app.ts";
import { planLimits, refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, UserRow } from "../db/schema.ts";
import { AppError, invalid } from "../errors.ts";
import { addressOf, newLocalPart, prefixOf } from "./addresses.ts";
import { normalizeAllowlist } from "./allowlist.ts";

/** Capability names a scope may hold until tools arrive: see `scope.targets`. */
const TARGET_FORM = /^(ai|notes|codehost-a|codehost-b|sheets|mcp:[a-z0-9]+(-[a-z0-9]+)*)$/;

export interface Scope {
  /** What the inbox may use. An empty list is the model alone. */
  targets: string[];
  /** Targets whose writing tools may run on untrusted mail without being named. */
  autonomous: string[];
}

export interface InboundPolicy {
  /** Answer strangers whose address could not be authenticated. */
  reply_to_unauthenticated: boolean;
  /** Route newsletters and other bulk mail, without an answer. */
  process_bulk: boolean;
}

export interface InboxInput {
  label?: string | null;
  prefix?: string;
  default_connection_id?: string | null;
  mcp_connection_ids?: string[];
  reply_enabled?: boolean;
  allowlist_senders?: string[];
  scope?: { targets: string[]; autonomous?: string[] } | null;
  inbound_policy?: Partial<InboundPolicy>;
}

export type InboxView = ReturnType<typeof viewInbox>;

const DEFAULT_LABEL = "Inbox";
const DEFAULT_POLICY: InboundPolicy = { reply_to_unauthenticated: false, process_bulk: false };

export async function listInboxes(app: App, user: UserRow): Promise<InboxView[]> {
  const rows = await app.db
    .selectFrom("inboxes")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  return rows.map((row) => viewInbox(app, row));
}

export async function createInbox(app: App, user: UserRow, input: InboxInput): Promise<InboxView> {
  const label = input.label || DEFAULT_LABEL;
  const prefix = prefixOf(input.prefix ?? input.label ?? "");
  return app.write(async (tx) => {
    const limits = planLimits(app.config, user.plan);
    refuseOverCap("inboxes", limits.inboxes, (await countInboxes(tx, user)) + 1);
    const row: InboxRow = {
      id: Bun.randomUUIDv7(),
      user_id: user.id,
      label,
      prefix,
      local_part: newLocalPart(prefix),
      domain: app.config.smtp.domain,
      default_connection_id: null,
      mcp_connection_ids: "[]",
      reply_enabled: 1,
      allowlist_senders: "[]",
      scope: null,
      inbound_policy: JSON.stringify(DEFAULT_POLICY),
      created: app.now(),
      updated: app.now(),
      ...(await columnsOf(app, tx, { user, input, policy: DEFAULT_POLICY })),
    };
    await tx.insertInto("inboxes").values(row).execute();
    return viewInbox(app, row);
  });
}

/** RFC 7396: absent members stay as they are, `null` clears those that may be empty. */
export async function patchInbox(
  app: App,
  user: UserRow,
  patch: { id: string; input: InboxInput },
): Promise<InboxView> {
  return app.write(async (tx) => {
    const row = await ownInbox(tx, user, patch.id);
    const policy = JSON.parse(row.inbound_policy) as InboundPolicy;
    const label = patch.input.label === undefined ? {} : { label: patch.input.label ?? "" };
    const columns = { ...label, ...(await columnsOf(app, tx, { user, input: patch.input, policy })) };
    const updated = Object.keys(columns).length === 0 ? row.updated : app.now();
    const changed = { ...row, ...columns, updated };
    await tx.updateTable("inboxes").set(changed).where("id", "=", row.id).execute();
    return viewInbox(app, changed);
  });
}

/** The address is never given out again: mail to it is refused from now on. */
export async function deleteInbox(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    const row = await ownInbox(tx, user, id);
    await tx
      .insertInto("retired_addresses")
      .values({ address: addressOf(row), retired_at: app.now() })
      .execute();
    const mine = tx.updateTable("conversations").set({ inbox_id: null }).where("user_id", "=", user.id);
    await mine.where("inbox_id", "=", row.id).execute();
    await tx.deleteFrom("inboxes").where("id", "=", row.id).execute();
  });
}

/** Whosever it is: for work that was accepted for it, where no user asks. */
export const inboxById = prepared((db, key: { id: string }) =>
  db.selectFrom("inboxes").selectAll().where("id", "=", key.id),
);

/** The user's own inbox, or `not_found`, whether it is unknown or somebody else's. */
export async function ownInbox(db: Db, user: UserRow, id: string): Promise<InboxRow> {
  const [row] = await inboxOfUser(db, { id, user_id: user.id });
  if (!row) throw new AppError("not_found", "There is no such inbox.");
  return row;
}

const inboxOfUser = prepared((db, key: { id: string; user_id: string }) =>
  db.selectFrom("inboxes").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

export function viewInbox(app: App, row: InboxRow) {
  return {
    id: row.id,
    label: row.label,
    address: addressOf(row),
    local_part: row.local_part,
    prefix: row.prefix,
    domain: row.domain,
    default_connection_id: row.default_connection_id,
    mcp_connection_ids: JSON.parse(row.mcp_connection_ids) as string[],
    reply_enabled: row.reply_enabled === 1,
    allowlist_senders: JSON.parse(row.allowlist_senders) as string[],
    scope: row.scope === null ? null : (JSON.parse(row.scope) as Scope),
    inbound_policy: JSON.parse(row.inbound_policy) as InboundPolicy,
    routed: row.default_connection_id !== null || app.config.llm.kind !== "",
    created: row.created,
    updated: row.updated,
  };
}

async function countInboxes(tx: Db, user: UserRow): Promise<number> {
  const { count } = await tx
    .selectFrom("inboxes")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .executeTakeFirstOrThrow();
  return count;
}

interface Change {
  user: UserRow;
  input: InboxInput;
  policy: InboundPolicy;
}

/** The columns that the given members set; references and list sizes are checked here. */
async function columnsOf(app: App, tx: Db, { user, input, policy }: Change): Promise<Partial<InboxRow>> {
  const limits = planLimits(app.config, user.plan);
  const columns: Partial<InboxRow> = {};
  if (input.default_connection_id !== undefined) {
    await refuseForeignConnections(tx, user, {
      path: "default_connection_id",
      ids: [input.default_connection_id ?? []].flat(),
      mcp: false,
    });
    columns.default_connection_id = input.default_connection_id;
  }
  if (input.mcp_connection_ids !== undefined) {
    const ids = [...new Set(input.mcp_connection_ids)];
    refuseOverCap("MCP connections in one inbox", limits.mcp_per_inbox, ids.length);
    await refuseForeignConnections(tx, user, { path: "mcp_connection_ids", ids, mcp: true });
    columns.mcp_connection_ids = JSON.stringify(ids);
  }
  if (input.reply_enabled !== undefined) columns.reply_enabled = input.reply_enabled ? 1 : 0;
  if (input.allowlist_senders !== undefined) {
    const senders = normalizeAllowlist(input.allowlist_senders);
    refuseOverCap("allowed senders in one inbox", limits.allowlist_entries, senders.length);
    columns.allowlist_senders = JSON.stringify(senders);
  }
  if (input.scope !== undefined)
    columns.scope = input.scope === null ? null : JSON.stringify(checkedScope(input.scope));
  if (input.inbound_policy !== undefined)
    columns.inbound_policy = JSON.stringify({ ...policy, ...input.inbound_policy });
  return columns;
}

async function refuseForeignConnections(
  tx: Db,
  user: UserRow,
  wanted: { path: string; ids: string[]; mcp: boolean },
): Promise<void> {
  if (wanted.ids.length === 0) return;
  const rows = await tx
    .selectFrom("connections")
    .select(["id", "kind"])
    .where("user_id", "=", user.id)
    .where("id", "in", wanted.ids)
    .where("kind", wanted.mcp ? "=" : "!=", "mcp")
    .execute();
  const found = new Set(rows.map((row) => row.id));
  if (wanted.ids.every((id) => found.has(id))) return;
  throw invalid(`body.${wanted.path}`, "connection_not_found", "connection not found");
}

function checkedScope(scope: { targets: string[]; autonomous?: string[] }): Scope {
  const targets = [...new Set(scope.targets)];
  const autonomous = [...new Set(scope.autonomous)];
  const unknown = targets.find((target) => !TARGET_FORM.test(target));
  if (unknown !== undefined)
    throw invalid("body.scope.targets", "unknown_target", `"${unknown.slice(0, 100)}" is not a target.`);
  const outside = autonomous.find((target) => !targets.includes(target));
  if (outside !== undefined)
    throw invalid(
      "body.scope.autonomous",
      "outside_targets",
      `"${outside.slice(0, 100)}" must also stand in scope.targets.`,
    );
  return { targets, autonomous };
}
