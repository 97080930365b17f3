import type { App } from "../../app.ts";
import {
  grantedColumns,
  openStored,
  openWithEnd,
  type Sealed,
  type UnwrittenGrant,
  unwrittenGrant,
} from "../connections/sealed.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { tellNeedsAuth } from "./needs-auth.ts";
import { refreshTokens, type TokenOutcome, type Tokens } from "./oauth-client.ts";
import { providerNamed, providerServer } from "./providers.ts";

/** A token is renewed so long before its end, so that it does not end on its way. */
const MARGIN_SECONDS = 60;

/**
 * A token of a connection that is valid for at least a minute, refreshed if need be; null when its owner has to
 * connect it again. `refused`: the token that the provider has just refused. Throws AppError "internal" when the
 * secrets cannot be opened.
 */
export async function freshToken(app: App, connection_id: string, refused?: string): Promise<string | null> {
  const held = await holdingOf(app, connection_id);
  if (held === undefined) return null;
  const { credential, oauth } = held.sealed;
  if (oauth?.ended) return null;
  if (credential !== "" && credential !== refused && !isEnding(app, held)) return credential;
  return oauth === undefined ? null : refreshOnce(app, connection_id, refused);
}

interface Holding {
  id: string;
  row: ConnectionRow;
  sealed: Sealed;
  expires_at: number | null;
}

/** Tokens in memory are newer than those on the disk. */
async function holdingOf(app: App, id: string): Promise<Holding | undefined> {
  const row = await connectionRow(app.db, id);
  return row && { id, row, ...openWithEnd(app, row) };
}

function connectionRow(db: Db, id: string): Promise<ConnectionRow | undefined> {
  return db.selectFrom("connections").selectAll().where("id", "=", id).executeTakeFirst();
}

/** Whether a token is about to end. A key never ends, and of many a token nobody says when it does. */
function isEnding(app: App, { expires_at }: Holding): boolean {
  return expires_at !== null && expires_at - MARGIN_SECONDS <= app.now();
}

async function refreshOnce(app: App, id: string, refused: string | undefined): Promise<string | null> {
  const all = app.refreshing;
  const running = all.get(id);
  if (running) {
    const token = await running;
    return token === refused ? null : token;
  }
  const refresh = refreshNow(app, id, refused).finally(() => all.delete(id));
  all.set(id, refresh);
  return refresh;
}

async function refreshNow(app: App, id: string, refused: string | undefined): Promise<string | null> {
  // Read again: somebody may have refreshed it between the first look and the lock.
  const held = await holdingOf(app, id);
  if (held === undefined) return null;
  const { credential, oauth } = held.sealed;
  if (oauth === undefined || oauth.ended) return null;
  if (credential !== refused && !isEnding(app, held)) return credential;
  const { refresh_token } = oauth;
  if (refresh_token === null) return endWithout(app, held, refused);
  const outcome = await askForTokens(app, held, refresh_token);
  if (outcome.ok) return keepTokens(app, held, outcome.tokens);
  if (outcome.refused) {
    await tellNeedsAuth(app, held.row, { credential, refresh_token, why: outcome.message });
    return null;
  }
  app.log.info({ connection_id: id, why: outcome.message }, "a token could not be refreshed");
  return stillGood(app, held, refused);
}

/**
 * Asks for new tokens. A provider that is no longer configured counts as a passing fault: it may be configured again
 * tomorrow.
 */
async function askForTokens(app: App, { row, sealed }: Holding, token: string): Promise<TokenOutcome> {
  try {
    const server = sealed.oauth?.server ?? providerServer(app, providerNamed(row.kind));
    return await refreshTokens(app, server, token);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ok: false, refused: false, message: error.message };
  }
}

/** What is left where no new tokens came: null if the token has ended, or the provider refused it. */
async function endWithout(app: App, held: Holding, refused: string | undefined): Promise<string | null> {
  const good = stillGood(app, held, refused);
  if (good !== null) return good;
  const { credential } = held.sealed;
  await tellNeedsAuth(app, held.row, {
    credential,
    refresh_token: null,
    why: "Its access has ended, and there is no way to renew it.",
  });
  return null;
}

function stillGood(app: App, { expires_at, sealed }: Holding, refused: string | undefined): string | null {
  const ended = expires_at !== null && expires_at <= app.now();
  return ended || sealed.credential === refused ? null : sealed.credential;
}

/**
 * Keeps new tokens in memory until they are written: most providers end the old refresh token as they give a new one.
 */
async function keepTokens(app: App, used: Holding, tokens: Tokens): Promise<string | null> {
  const { id, row, sealed } = used;
  const spent = sealed.oauth?.refresh_token ?? null;
  const grant: UnwrittenGrant = {
    // Both tokens count: the one in memory may have been written while the provider was asked.
    instead_of: [openStored(app, row).oauth?.refresh_token ?? null, spent],
    refresh_token: tokens.refresh_token ?? spent,
    credential: tokens.access_token,
    expires_at: tokens.expires_at,
  };
  app.unwritten.set(id, grant);
  await app.insist((tx) => writeGrant(app, tx, id), { connection_id: id });
  const held = await holdingOf(app, id);
  return held === undefined || held.sealed.credential === "" ? null : held.sealed.credential;
}

/** Writes tokens, unless the connection was connected anew, changed or deleted while the provider was asked. */
async function writeGrant(app: App, tx: Db, id: string): Promise<void> {
  const grant = app.unwritten.get(id);
  // They were written meanwhile along with something else.
  if (grant === undefined) return;
  afterCommit(tx, () => {
    if (app.unwritten.get(id) === grant) app.unwritten.delete(id);
  });
  const row = await connectionRow(tx, id);
  if (row === undefined) return;
  const sealed = openStored(app, row);
  if (sealed.oauth === undefined || unwrittenGrant(app, row, sealed) === undefined) return;
  const { credential, expires_at, refresh_token } = grant;
  const columns = grantedColumns(app, row, {
    credential,
    expires_at,
    oauth: { ...sealed.oauth, refresh_token },
  });
  const status = row.status === "needs_auth" ? "ok" : row.status;
  await tx
    .updateTable("connections")
    .set({ ...columns, status })
    .where("id", "=", id)
    .execute();
}
