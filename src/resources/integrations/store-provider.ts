import { noteSecurityEvent } from "../accounts/security-events.ts";
import type { App } from "../../app.ts";
import { insertConnection, newConnection } from "../connections/connections.ts";
import { KIND_INFO, ownBaseUrl } from "../connections/kinds.ts";
import { PingFault } from "../connections/ping.ts";
import { apiPingOf, pingApi } from "../connections/ping-api.ts";
import { newlyGrantedColumns, type OAuthGrant, openIfPossible } from "../connections/sealed.ts";
import type { Db } from "../../db/database.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { member } from "../../lib/foreign-json.ts";
import type { Granted, Store } from "./callback.ts";
import type { Tokens } from "./oauth-client.ts";
import type { IntegrationKind } from "../../config/integrations.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

const WHOAMI_TIMEOUT_MS = 10_000;
const MAX_NAME_CHARS = 60;

/** The account at the provider: `id` tells accounts apart, `name` is for people. */
interface Account {
  id: string;
  name: string;
}

/** Stores a token as the connection of its kind and account; returns the name of that (see `Store`). */
export async function storeProvider(app: App, kind: IntegrationKind, granted: Granted): ReturnType<Store> {
  const { row: state, tokens, client } = granted;
  const account = await accountOf(app, kind, tokens);
  const keep = async (tx: Db): Promise<string> => {
    const user = await ownerOf(tx, state);
    const known = await connectionOfAccount(app, tx, { user, kind, id: account.id });
    const row = known ?? { ...newConnection(app, user, kind), label: labelOf(kind, account) };
    const oauth: OAuthGrant = {
      // Google gives a refresh token only with the first consent, and it stays valid.
      refresh_token: tokens.refresh_token ?? openIfPossible(app, row)?.oauth?.refresh_token ?? null,
      account: account.id,
      server: null,
      ended: false,
    };
    const { access_token: credential, expires_at } = tokens;
    const changed = {
      ...row,
      ...newlyGrantedColumns(app, row, { credential, expires_at, oauth }),
      // The same account at the provider, so that what is allowed there stays allowed.
      ...(known ? { secrets_id: known.secrets_id } : {}),
      status: "ok" as const,
      last_error: null,
      updated: app.now(),
    };
    if (known) await tx.updateTable("connections").set(changed).where("id", "=", row.id).execute();
    const { label } = known ?? (await insertConnection(app, tx, user, changed));
    const event = known ? "connection_changed" : "connection_created";
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: event, client, api_key: state.api_key });
    return label;
  };
  return app.insist(keep, { user_id: state.user_id, kind });
}

/** The user as of now: the plan may have changed while the consent page was open. */
async function ownerOf(tx: Db, state: Granted["row"]): Promise<UserRow> {
  const user = await tx.selectFrom("users").selectAll().where("id", "=", state.user_id).executeTakeFirst();
  if (!user) throw new AppError("not_found", "The account that started this is no longer there.");
  return user;
}

/**
 * The account that a token belongs to, asked with the token. Notion names it along with the token, and has nothing
 * else to ask.
 */
async function accountOf(app: App, kind: IntegrationKind, tokens: Tokens): Promise<Account> {
  if (kind === "notes") return workspaceOf(tokens.said);
  const base_url = ownBaseUrl(app, kind);
  const target = {
    kind,
    name: KIND_INFO[kind].label,
    base_url,
    credential: tokens.access_token,
    headers: {},
    oauth: true,
    fetch: app.fetch,
    signal: timeoutSignal(WHOAMI_TIMEOUT_MS),
  };
  try {
    const { account } = await pingApi(target, apiPingOf(kind));
    if (account === null || account === "") throw unnamed(kind);
    return { id: `${new URL(base_url).origin} ${account}`, name: account };
  } catch (error) {
    if (!(error instanceof PingFault)) throw error;
    throw new AppError("unavailable", error.message);
  }
}

function workspaceOf(said: unknown): Account {
  const workspace = member(said, "workspace_id");
  const owner = member(member(member(said, "owner"), "user"), "id");
  if (typeof workspace !== "string") throw unnamed("notes");
  const name = member(said, "workspace_name");
  return {
    id: `${workspace} ${typeof owner === "string" ? owner : ""}`,
    name: typeof name === "string" ? name : workspace,
  };
}

function unnamed(kind: IntegrationKind): AppError {
  return new AppError(
    "unavailable",
    `${KIND_INFO[kind].label} did not say whose account it is. Connect again in a minute.`,
  );
}

/** The connection that a new token is for: one that came by OAuth too, and is still at the provider's own address. */
async function connectionOfAccount(
  app: App,
  tx: Db,
  wanted: { user: UserRow; kind: IntegrationKind; id: string },
): Promise<ConnectionRow | undefined> {
  const rows = await tx
    .selectFrom("connections")
    .selectAll()
    .where("user_id", "=", wanted.user.id)
    .where("kind", "=", wanted.kind)
    .where("auth", "=", "oauth")
    .where("base_url", "is", null)
    .orderBy("id")
    .execute();
  return rows.find((row) => openIfPossible(app, row)?.oauth?.account === wanted.id);
}

/** The label of a connection. Others chose the account's name, so it is cut to one short line. */
function labelOf(kind: IntegrationKind, { name }: Account): string {
  const line = name.replace(/[\s\p{C}]+/gu, " ").trim();
  const short = line.slice(0, MAX_NAME_CHARS).toWellFormed();
  return short === "" ? KIND_INFO[kind].label : `${KIND_INFO[kind].label} (${short})`;
}
