import { MODEL_KINDS, type ModelKind } from "../ai/providers.ts";
import type { App } from "../app.ts";
import { planLimits, refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { ConnectionRow, UserRow } from "../db/schema.ts";
import { AppError, invalid } from "../errors.ts";
import { refuseBadUrl, refuseUnsendable } from "./rules.ts";

export const CONNECTION_KINDS = Object.keys(MODEL_KINDS) as ModelKind[];

const HINT_CHARS = 4;
/** Below this length a hint would give too much of the secret away. */
const MIN_CHARS_FOR_HINT = 12;
const DEFAULT_CONNECTION_ID = "default";

export interface ConnectionInput {
  kind?: ModelKind;
  label?: string;
  credential?: string;
  model?: string | null;
  base_url?: string | null;
  headers?: Record<string, string>;
}

/** What a model call needs of a connection, its secret opened. */
export interface OpenConnection {
  id: string;
  kind: ModelKind;
  base_url: string;
  api_key: string;
  model: string;
  headers: Record<string, string>;
  /** The operator's own connection may live on a private address; a user's only where `egress.allow` says so. */
  trusted: boolean;
}

interface Sealed {
  credential: string;
  headers: Record<string, string>;
}

export async function listConnections(app: App, user: UserRow) {
  const rows = await app.db
    .selectFrom("connections")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  const uses = await app.db
    .selectFrom("inboxes")
    .select((eb) => ["default_connection_id as id", eb.fn.countAll<number>().as("count")])
    .where("user_id", "=", user.id)
    .groupBy("default_connection_id")
    .execute();
  const usesOf = new Map(uses.map((use) => [use.id, use.count]));
  return rows.map((row) => viewConnection(row, usesOf.get(row.id) ?? 0));
}

export async function createConnection(
  app: App,
  user: UserRow,
  input: ConnectionInput & { kind: ModelKind },
) {
  const row: ConnectionRow = {
    id: Bun.randomUUIDv7(),
    user_id: user.id,
    kind: input.kind,
    label: input.label || MODEL_KINDS[input.kind].label,
    model: null,
    base_url: null,
    sealed: null,
    credential_hint: null,
    status: "untested",
    last_error: null,
    last_tested_at: null,
    created: app.now(),
    updated: app.now(),
    auth: "key",
    expires_at: null,
    config: null,
    fallback_connection_id: null,
  };
  const filled = { ...row, ...changedColumns(app, row, input) };
  refuseIncomplete(app, filled);
  await app.write(async (tx) => {
    const limit = planLimits(app.config, user.plan).connections;
    refuseOverCap("connections", limit, (await countConnections(tx, user)) + 1);
    await tx.insertInto("connections").values(filled).execute();
  });
  return viewConnection(filled, 0);
}

export async function patchConnection(
  app: App,
  user: UserRow,
  patch: { id: string; input: ConnectionInput },
) {
  return app.write(async (tx) => {
    const row = await ownConnection(tx, user, patch.id);
    if (patch.input.kind !== undefined && patch.input.kind !== row.kind)
      throw invalid(
        "body.kind",
        "immutable",
        "The kind of a connection cannot change; make a new connection instead.",
      );
    const columns = changedColumns(app, row, patch.input);
    const updated = Object.keys(columns).length === 0 ? row.updated : app.now();
    const changed = { ...row, ...columns, updated };
    refuseIncomplete(app, changed);
    await tx.updateTable("connections").set(changed).where("id", "=", row.id).execute();
    return viewConnection(changed, await countUses(tx, row.id));
  });
}

/** Inboxes that used it are left without a connection. */
export async function deleteConnection(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    await ownConnection(tx, user, id);
    const inboxes = await tx
      .selectFrom("inboxes")
      .select(["id", "mcp_connection_ids"])
      .where("user_id", "=", user.id)
      .execute();
    for (const inbox of inboxes) {
      const ids = JSON.parse(inbox.mcp_connection_ids) as string[];
      if (!ids.includes(id)) continue;
      const mcp_connection_ids = JSON.stringify(ids.filter((other) => other !== id));
      await tx.updateTable("inboxes").set({ mcp_connection_ids }).where("id", "=", inbox.id).execute();
    }
    await tx.deleteFrom("connections").where("id", "=", id).execute();
  });
}

/** The model connection of an inbox: its own, else the operator's default, else undefined. */
export async function openConnectionOf(
  app: App,
  inbox: { user_id: string; default_connection_id: string | null },
): Promise<OpenConnection | undefined> {
  if (inbox.default_connection_id === null) return operatorConnection(app);
  const { default_connection_id: id, user_id } = inbox;
  const [row] = await connectionOf(app.db, { id, user_id });
  return row && openConnection(app, row);
}

const connectionOf = prepared((db, key: { id: string; user_id: string }) =>
  db.selectFrom("connections").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

function operatorConnection(app: App): OpenConnection | undefined {
  const { kind, base_url, api_key, model } = app.config.llm;
  if (kind === "") return undefined;
  const info = MODEL_KINDS[kind];
  return {
    id: DEFAULT_CONNECTION_ID,
    kind,
    base_url: base_url || (info.base_url ?? ""),
    api_key,
    model: model || info.default_model,
    headers: {},
    trusted: true,
  };
}

function openConnection(app: App, row: ConnectionRow): OpenConnection {
  const kind = row.kind as ModelKind;
  const info = MODEL_KINDS[kind];
  const { credential, headers } = openSealed(app, row);
  return {
    id: row.id,
    kind,
    base_url: row.base_url ?? info.base_url ?? "",
    api_key: credential,
    model: row.model ?? info.default_model,
    headers,
    trusted: false,
  };
}

function openSealed(app: App, row: ConnectionRow): Sealed {
  return row.sealed === null ? NOTHING_SEALED : (JSON.parse(app.secrets.open(row.sealed, row.id)) as Sealed);
}

function changedColumns(app: App, row: ConnectionRow, input: ConnectionInput): Partial<ConnectionRow> {
  const columns: Partial<ConnectionRow> = {};
  if (input.label !== undefined) columns.label = input.label || row.label;
  if (input.model !== undefined) columns.model = input.model || null;
  if (input.base_url !== undefined) columns.base_url = input.base_url || null;
  if (input.credential === undefined && input.headers === undefined) return columns;
  return { ...columns, ...sealedColumns(app, row, input) };
}

function sealedColumns(app: App, row: ConnectionRow, input: ConnectionInput): Partial<ConnectionRow> {
  const { credential: given, headers } = input;
  // With both given anew, what cannot be opened any more need not be.
  const sealed =
    given !== undefined && headers !== undefined ? NOTHING_SEALED : openOrNothing(app, row, given);
  const next: Sealed = { credential: given?.trim() ?? sealed.credential, headers: headers ?? sealed.headers };
  refuseUnsendable(next);
  const { credential } = next;
  return {
    sealed: app.secrets.seal(JSON.stringify(next), row.id),
    credential_hint: credential.length >= MIN_CHARS_FOR_HINT ? `…${credential.slice(-HINT_CHARS)}` : null,
    status: "untested",
    last_error: null,
  };
}

const NOTHING_SEALED: Sealed = { credential: "", headers: {} };

/** A new credential mends a connection whose old one cannot be opened; its headers are lost with it. */
function openOrNothing(app: App, row: ConnectionRow, given: string | undefined): Sealed {
  try {
    return openSealed(app, row);
  } catch (error) {
    if (given === undefined) throw error;
    return NOTHING_SEALED;
  }
}

function refuseIncomplete(app: App, row: ConnectionRow): void {
  const info = MODEL_KINDS[row.kind as ModelKind];
  if (info.needs_credential && openSealed(app, row).credential === "")
    throw invalid(
      "body.credential",
      "missing",
      `A connection to ${info.label} needs a credential (its API key).`,
    );
  if (info.needs_base_url && row.base_url === null)
    throw invalid(
      "body.base_url",
      "missing",
      "This kind of connection needs a base_url, such as https://models.example.com/v1.",
    );
  if (row.base_url !== null) refuseBadUrl(app, row.base_url);
}

async function ownConnection(db: Db, user: UserRow, id: string): Promise<ConnectionRow> {
  const row = await db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such connection.");
  return row;
}

function viewConnection(row: ConnectionRow, used_by_inboxes: number) {
  return {
    id: row.id,
    kind: row.kind,
    category: MODEL_KINDS[row.kind as ModelKind].category,
    label: row.label,
    model: row.model,
    base_url: row.base_url,
    status: row.status,
    credential_hint: row.credential_hint,
    has_credential: row.sealed !== null,
    auth: row.sealed === null ? ("none" as const) : ("key" as const),
    expires_at: null,
    last_tested_at: row.last_tested_at,
    last_error: row.last_error,
    used_by_inboxes,
    created: row.created,
    updated: row.updated,
  };
}

async function countConnections(db: Db, user: UserRow): Promise<number> {
  const { count } = await db
    .selectFrom("connections")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .executeTakeFirstOrThrow();
  return count;
}

async function countUses(db: Db, connection_id: string): Promise<number> {
  const { count } = await db
    .selectFrom("inboxes")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("default_connection_id", "=", connection_id)
    .executeTakeFirstOrThrow();
  return count;
}
