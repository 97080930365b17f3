import type { App } from "../../app.ts";
import type { OAuthServer } from "../connections/sealed.ts";
import type { Db } from "../../db/database.ts";
import { noteChange } from "../accounts/changes.ts";
import { keyMarksOf, shownKey } from "../accounts/key-marks.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { OAuthStateRow, UserRow } from "../../db/schema.ts";
import { hashSecret } from "../../lib/secrets.ts";

/** How long a consent page may stay open. */
export const STATE_SECONDS = 600;
const MAX_OPEN_STATES = 20;

/** What is stored of a round trip until the browser comes back. */
export interface RoundTrip {
  verifier: string;
  server: OAuthServer;
  /** The address of the MCP server when it began; null for an integration. */
  base_url: string | null;
}

export interface NewState {
  state: string;
  provider: string;
  connection_id: string | null;
  trip: RoundTrip;
}

/** A round trip that has not ended yet. */
export interface OpenTrip {
  row: OAuthStateRow;
  trip: RoundTrip;
}

export async function keepState(app: App, caller: Caller, given: NewState): Promise<void> {
  const { user, session, key_id } = caller;
  const state_hash = hashSecret(given.state);
  const row: OAuthStateRow = {
    state_hash,
    user_id: user.id,
    provider: given.provider,
    connection_id: given.connection_id,
    sealed: app.secrets.seal(JSON.stringify(given.trip), state_hash),
    cookie_hash: null,
    // Rounded up: no state counts as older than it is.
    created: app.after(0),
    session_id: session?.id ?? null,
    api_key: shownKey(await keyMarksOf(app.db, key_id)),
  };
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "connection_begun");
    await tx
      .deleteFrom("oauth_states")
      .where("created", "<=", app.now() - STATE_SECONDS)
      .execute();
    await dropOldest(tx, user);
    await tx.insertInto("oauth_states").values(row).execute();
  });
}

/** The round trip of a state; undefined when the state is unknown, used, too old, or meant for another path. */
export async function findTrip(app: App, provider: string, state: string): Promise<OpenTrip | undefined> {
  const state_hash = hashSecret(state);
  const row = await app.db
    .selectFrom("oauth_states")
    .selectAll()
    .where("state_hash", "=", state_hash)
    .where("provider", "=", provider)
    .where("created", ">", app.now() - STATE_SECONDS)
    .executeTakeFirst();
  return row && { row, trip: JSON.parse(app.secrets.open(row.sealed, state_hash)) as RoundTrip };
}

/** Deletes a state, so that nobody can use it again; false when somebody was faster. */
export async function endTrip(app: App, { row }: OpenTrip): Promise<boolean> {
  const { numDeletedRows } = await app.write((tx) =>
    tx.deleteFrom("oauth_states").where("state_hash", "=", row.state_hash).executeTakeFirst(),
  );
  return numDeletedRows > 0n;
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
