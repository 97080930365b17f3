import type { App } from "../app.ts";
import type { OAuthServer } from "../connections/sealed.ts";
import type { Db } from "../db/database.ts";
import type { OAuthStateRow, UserRow } from "../db/schema.ts";
import { hashSecret } from "../lib/secrets.ts";

/** How long a consent page may stay open. */
export const STATE_SECONDS = 600;
const MAX_OPEN_STATES = 20;

/** What is kept of a round trip until the browser comes back. */
export interface RoundTrip {
  verifier: string;
  server: OAuthServer;
  /** Where the MCP server was; null for an integration. */
  base_url: string | null;
}

export interface NewState {
  state: string;
  provider: string;
  connection_id: string | null;
  /** What the browser's cookie holds; null for a caller with an API key. */
  cookie: string | null;
  trip: RoundTrip;
}

/** Of all browsers, the one that set out; empty without a cookie. */
export interface ReturningBrowser {
  cookie: string;
  /** Whose session it has, if any. */
  user_id: string | null;
}

export async function keepState(app: App, user: UserRow, given: NewState): Promise<void> {
  const state_hash = hashSecret(given.state);
  const row: OAuthStateRow = {
    state_hash,
    user_id: user.id,
    provider: given.provider,
    connection_id: given.connection_id,
    sealed: app.secrets.seal(JSON.stringify(given.trip), state_hash),
    cookie_hash: given.cookie === null ? null : hashSecret(given.cookie),
    created: app.after(0),
  };
  await app.write(async (tx) => {
    await tx
      .deleteFrom("oauth_states")
      .where("created", "<=", app.now() - STATE_SECONDS)
      .execute();
    await dropOldest(tx, user);
    await tx.insertInto("oauth_states").values(row).execute();
  });
}

/**
 * Takes a state out, so that nobody can use it again; undefined when it is unknown, too old, meant for another path,
 * or brought by another browser than the one that set out.
 */
export async function takeState(
  app: App,
  provider: string,
  state: string,
  browser: ReturningBrowser,
): Promise<(RoundTrip & { row: OAuthStateRow }) | undefined> {
  const state_hash = hashSecret(state);
  // A look first: strangers who guess must not make the database write.
  const known = await app.db
    .selectFrom("oauth_states")
    .selectAll()
    .where("state_hash", "=", state_hash)
    .where("provider", "=", provider)
    .where("created", ">", app.now() - STATE_SECONDS)
    .executeTakeFirst();
  if (!known || !isSameBrowser(known, browser)) return undefined;
  const row = await app.write((tx) =>
    tx.deleteFrom("oauth_states").where("state_hash", "=", state_hash).returningAll().executeTakeFirst(),
  );
  return row && { row, ...(JSON.parse(app.secrets.open(row.sealed, state_hash)) as RoundTrip) };
}

/** A consent page that somebody else was lured to must not end in the lurer's account. */
function isSameBrowser(row: OAuthStateRow, { cookie, user_id }: ReturningBrowser): boolean {
  return (
    (row.cookie_hash === null || row.cookie_hash === hashSecret(cookie)) &&
    (user_id === null || user_id === row.user_id)
  );
}

async function dropOldest(tx: Db, user: UserRow): Promise<void> {
  const open = await tx
    .selectFrom("oauth_states")
    .select("state_hash")
    .where("user_id", "=", user.id)
    .orderBy("created", "desc")
    .execute();
  const surplus = open.slice(MAX_OPEN_STATES - 1).map(({ state_hash }) => state_hash);
  if (surplus.length > 0) await tx.deleteFrom("oauth_states").where("state_hash", "in", surplus).execute();
}
