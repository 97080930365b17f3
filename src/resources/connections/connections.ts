import { toolServersOf } from "../../db/inbox-columns.ts";
import { MODEL_KINDS, type ModelKind } from "../../ai/providers.ts";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { budgetColumn, refuseRaised } from "../billing/budget-column.ts";
import { refuseBeyondPlan, refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { revokeTokens } from "../integrations/revoke.ts";
import { keepGrants } from "./grants.ts";
import { type ConnectionKind, isModelKind, KIND_INFO } from "./kinds.ts";
import { fallbacksOf, refuseBadFallbacks, removeFallback } from "./fallbacks.ts";
import { splitConfig } from "./client-secret.ts";
import {
  refuseIncomplete,
  refuseLargeConfig,
  refuseMovedSecrets,
  refuseSwapped,
  refuseUnasked,
  refuseUnmarked,
} from "./rules.ts";
import { openSealed, sealedColumns } from "./sealed.ts";
import { tryIfMended } from "./try-waiting.ts";
import { connectionViewer } from "./view.ts";
import type { ConnectionInput, NewConnection } from "./body-shapes.ts";

const DEFAULT_CONNECTION_ID = "default";
const SEALED_MEMBERS = ["credential", "headers", "client_secret"];
const MAX_LABEL_CHARS = 100;

/** What a model call needs of a connection, its secret opened. */
export interface OpenConnection {
  id: string;
  /** No other connection of the account has it. */
  label: string;
  kind: ModelKind;
  base_url: string;
  api_key: string;
  model: string;
  headers: Record<string, string>;
  /** The operator's own connection may live on a private address; a user's only where `egress.allow` says so. */
  trusted: boolean;
  /** The connections to ask, one after the other, when this one does not answer. */
  fallback_connection_ids: string[];
  /** What it may cost in a month, in millionths of the currency; null without a limit. */
  monthly_budget: number | null;
}

export async function listConnections(app: App, user: UserRow) {
  const rows = await app.db
    .selectFrom("connections")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  return rows.map(await connectionViewer(app, app.db, user.id));
}

export async function readConnection(app: App, user: UserRow, id: string) {
  const row = await ownConnection(app.db, user, id);
  return (await connectionViewer(app, app.db, user.id))(row);
}

export async function createConnection(app: App, caller: Caller, input: NewConnection) {
  const { user } = caller;
  const draft = draftConnection(app, user, input);
  const made = await app.write(async (tx) => {
    await noteChange(app, tx, caller, "connection_created");
    await refuseBadFallbacks(tx, draft);
    // Nobody has seen it who could tell where it leads; see `asksFirstAt`.
    return insertConnection(app, tx, user, { ...draft, unconfirmed: caller.session === null ? 1 : 0 });
  });
  return (await connectionViewer(app, app.db, user.id))(made);
}

/** The row that `input` describes, complete as its kind needs it, and not stored. */
export function draftConnection(app: App, user: UserRow, input: NewConnection): ConnectionRow {
  const row = newConnection(app, user, input.kind);
  const filled = { ...row, ...changedColumns(app, row, input) };
  refuseUnasked({ session: null }, row, input);
  refuseIncomplete(app, user, filled);
  return filled;
}

/** A row that is not stored yet, with nothing filled in. */
export function newConnection(app: App, user: UserRow, kind: ConnectionKind): ConnectionRow {
  return {
    id: app.newId(),
    user_id: user.id,
    kind,
    label: KIND_INFO[kind].label,
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
    fallback_connection_ids: "[]",
    monthly_budget: null,
    ask_tools: "[]",
    unconfirmed: 0,
    secrets_id: null,
  };
}

/**
 * Stores a connection under a name of its own, and returns its row. Throws `plan_limit_reached` over the cap of the
 * user's plan.
 */
export async function insertConnection(
  app: App,
  tx: Db,
  user: UserRow,
  row: ConnectionRow,
): Promise<ConnectionRow> {
  refuseOverCap(app, user, "connections", { wanted: (await countConnections(tx, user)) + 1 });
  const named = { ...row, label: await freeLabel(tx, row) };
  await tx.insertInto("connections").values(named).execute();
  return named;
}

/** A label for a connection that no other one of the account has: its own, with a number if need be. */
async function freeLabel(tx: Db, { id, user_id, label }: ConnectionRow): Promise<string> {
  const others = await tx
    .selectFrom("connections")
    .select("label")
    .where("user_id", "=", user_id)
    .where("id", "!=", id)
    .execute();
  // Compared here, because SQLite knows the case of ASCII letters alone.
  const taken = new Set(others.map((other) => other.label.toLowerCase()));
  let free = label;
  for (let number = 2; taken.has(free.toLowerCase()); number += 1) {
    const end = ` ${number}`;
    free = label.slice(0, MAX_LABEL_CHARS - end.length).toWellFormed() + end;
  }
  return free;
}

export async function patchConnection(
  app: App,
  caller: Caller,
  { id, input }: { id: string; input: ConnectionInput },
) {
  const { user } = caller;
  const { view, ...change } = await app.write(async (tx) => {
    await noteChange(app, tx, caller, "connection_changed");
    const row = await ownConnection(tx, user, id);
    if (input.kind !== undefined && input.kind !== row.kind)
      throw invalid(
        "body.kind",
        "immutable",
        "The kind of a connection cannot change; make a new connection instead.",
      );
    // Credentials can be replaced whatever the plan says, since one may have leaked.
    if (!Object.keys(input).every((name) => SEALED_MEMBERS.includes(name)))
      await refuseSurplus(app, tx, user, row);
    refuseUnasked(caller, row, input);
    const columns = changedColumns(app, row, input);
    if (columns.label !== undefined && columns.label !== row.label)
      columns.label = await freeLabel(tx, { ...row, label: columns.label });
    const updated = Object.keys(columns).length === 0 ? row.updated : app.now();
    const is_moved = columns.base_url !== undefined && columns.base_url !== row.base_url;
    // Whoever is signed in and saves it has seen it.
    const unconfirmed = caller.session !== null ? 0 : is_moved ? 1 : row.unconfirmed;
    const changed = { ...row, ...columns, unconfirmed, updated };
    refuseIncomplete(app, user, changed);
    refuseUnmarked(caller, row, changed);
    refuseRaised(caller, row, changed);
    await refuseSwapped(app, tx, caller, { before: row, after: changed });
    refuseMovedSecrets(app, { before: row, after: changed }, input);
    if (input.fallback_connection_ids !== undefined) await refuseBadFallbacks(tx, changed);
    await keepGrants(tx, user.id, () =>
      tx.updateTable("connections").set(changed).where("id", "=", row.id).execute(),
    );
    return { before: row, after: changed, view: (await connectionViewer(app, tx, user.id))(changed) };
  });
  await tryIfMended(app, change);
  return view;
}

/**
 * Deletes a connection. Inboxes that used it are left without one, and connections that fell back on it ask the
 * next of their fallbacks. A rule that names it keeps its id: what it is for fails and says so, before another provider is told of it. A token that came by OAuth is revoked, if its provider answers soon.
 */
export async function deleteConnection(app: App, caller: Caller, id: string): Promise<void> {
  const { user } = caller;
  const deleted = await app.write(async (tx) => {
    await noteChange(app, tx, caller, "connection_deleted");
    const row = await ownConnection(tx, user, id);
    refuseUnmarked(caller, row);
    const inboxes = await tx
      .selectFrom("inboxes")
      .select(["id", "mcp_connection_ids"])
      .where("user_id", "=", user.id)
      .execute();
    for (const inbox of inboxes) {
      const ids = toolServersOf(inbox);
      if (!ids.includes(id)) continue;
      const mcp_connection_ids = JSON.stringify(ids.filter((other) => other !== id));
      await tx.updateTable("inboxes").set({ mcp_connection_ids }).where("id", "=", inbox.id).execute();
    }
    await removeFallback(tx, row);
    // The schema sets the other references to null.
    await keepGrants(tx, user.id, () => tx.deleteFrom("connections").where("id", "=", id).execute());
    return row;
  });
  await revokeTokens(app, deleted);
}

/** The user's own connection, or `not_found`, whether it is unknown or somebody else's. */
export async function ownConnection(db: Db, user: UserRow, id: string): Promise<ConnectionRow> {
  const row = await db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such connection.");
  return row;
}

/** The model connection of an inbox: its own, else the operator's default, else undefined. */
export async function openConnectionOf(
  app: App,
  inbox: { user_id: string; default_connection_id: string | null },
): Promise<OpenConnection | undefined> {
  if (inbox.default_connection_id === null) return operatorConnection(app);
  const { default_connection_id: id, user_id } = inbox;
  const [row] = await rowOf(app.db, { id, user_id });
  return row && openConnection(app, row);
}

/** The user's own model connection of this id, or else of this label; undefined when there is none. */
export async function openConnectionNamed(
  app: App,
  user_id: string,
  name: string,
): Promise<OpenConnection | undefined> {
  const rows = await app.db
    .selectFrom("connections")
    .selectAll()
    .where("user_id", "=", user_id)
    .orderBy("id")
    .execute();
  // Compared here, because SQLite knows the case of ASCII letters alone.
  const called = rows.filter(({ label }) => label.toLowerCase() === name.toLowerCase());
  const row = rows.find(({ id }) => id === name) ?? called.find(({ kind }) => isModelKind(kind));
  return row && openConnection(app, row);
}

/** The row of a connection of an account's, for what every run asks. */
export const rowOf = remembered((db, key: { id: string; user_id: string }) =>
  db.selectFrom("connections").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

function operatorConnection(app: App): OpenConnection | undefined {
  const { kind, base_url, api_key, model } = app.config.llm;
  if (kind === "") return undefined;
  const info = MODEL_KINDS[kind];
  return {
    id: DEFAULT_CONNECTION_ID,
    label: info.label,
    kind,
    base_url: base_url || (info.base_url ?? ""),
    api_key,
    model: model || info.default_model,
    headers: {},
    trusted: true,
    fallback_connection_ids: [],
    monthly_budget: null,
  };
}

/** A row as what it takes to ask its model; undefined for one that is no model's. */
export function openConnection(app: App, row: ConnectionRow): OpenConnection | undefined {
  const { kind } = row;
  if (!isModelKind(kind)) return undefined;
  const info = MODEL_KINDS[kind];
  const { credential, headers } = openSealed(app, row);
  return {
    id: row.id,
    label: row.label,
    kind,
    base_url: row.base_url ?? info.base_url ?? "",
    api_key: credential,
    model: row.model ?? info.default_model,
    headers,
    trusted: false,
    fallback_connection_ids: fallbacksOf(row),
    monthly_budget: row.monthly_budget,
  };
}

function changedColumns(app: App, row: ConnectionRow, input: ConnectionInput): Partial<ConnectionRow> {
  const { config, ...hidden } = splitConfig(app, row, input.config);
  const secrets = { ...input, ...hidden };
  const columns: Partial<ConnectionRow> = budgetColumn(input);
  if (input.label !== undefined) columns.label = input.label || row.label;
  if (input.model !== undefined) columns.model = input.model || null;
  if (input.base_url !== undefined) columns.base_url = input.base_url || null;
  const { fallback_connection_ids: ids } = input;
  if (ids !== undefined) columns.fallback_connection_ids = JSON.stringify(ids);
  if (config !== undefined) columns.config = configColumn(config);
  if (input.ask_tools !== undefined) columns.ask_tools = JSON.stringify([...new Set(input.ask_tools)]);
  if (SEALED_MEMBERS.some((name) => name in secrets))
    Object.assign(columns, sealedColumns(app, row, secrets));
  return isAnother(row, columns) ? { ...columns, status: "untested", last_error: null } : columns;
}

/** Whether a change makes it another connection, about which earlier tests say nothing. */
function isAnother(row: ConnectionRow, { sealed, base_url, model }: Partial<ConnectionRow>): boolean {
  return (
    sealed !== undefined ||
    (base_url !== undefined && base_url !== row.base_url) ||
    (model !== undefined && model !== row.model)
  );
}

function configColumn(config: Record<string, unknown> | null): string | null {
  if (config === null) return null;
  const text = JSON.stringify(config);
  refuseLargeConfig(text);
  return text;
}

/** Throws for a connection beyond the plan: such connections stay in use, and cannot be changed. */
async function refuseSurplus(app: App, tx: Db, user: UserRow, { id }: ConnectionRow): Promise<void> {
  const ids = tx.selectFrom("connections").select("id").where("user_id", "=", user.id).orderBy("id");
  const rows = await ids.execute();
  const rank = rows.findIndex((row) => row.id === id) + 1;
  refuseBeyondPlan(app, user, "connections", { rank, count: rows.length });
}

async function countConnections(db: Db, user: UserRow): Promise<number> {
  const { count } = await db
    .selectFrom("connections")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .executeTakeFirstOrThrow();
  return count;
}
