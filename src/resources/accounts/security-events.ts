import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SecurityEventRow, UserRow } from "../../db/schema.ts";
import { messageOf } from "../../errors.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

/** How long the same event by the same key or client is counted with the first one. */
const REPEATED_SECONDS = HOUR_SECONDS;
/** Events of each kind that are kept: the first ones, and the last ones, however many come between. */
const FIRST_KEPT = 10;
const LAST_KEPT = 10;
/** How long an event counts as one of the first. */
const KEPT_SECONDS = 30 * DAY_SECONDS;

export const SECURITY_EVENT_KINDS = [
  "set_up",
  "code_sign_in",
  "code_shown",
  "password_sign_in",
  "password_failed",
  "password_set",
  "password_reset",
  "api_key_created",
  "api_key_revoked",
  "account_exported",
  "session_ended",
  "profile_changed",
  "connection_begun",
  "connection_created",
  "connection_changed",
  "connection_deleted",
  "inbox_created",
  "inbox_changed",
  "inbox_rotated",
  "inbox_deleted",
  "messages_deleted",
  "context_created",
  "context_changed",
  "context_deleted",
  "recipe_applied",
  "schedule_created",
  "schedule_changed",
  "schedule_deleted",
  "domain_created",
  "domain_deleted",
  "webhook_created",
  "webhook_changed",
  "webhook_deleted",
  "webhook_secret_shown",
  "webhook_secret_rotated",
  "billing_opened",
  "administered",
] as const;

export interface SecurityEvent {
  user_id: string;
  kind: (typeof SECURITY_EVENT_KINDS)[number];
  /** The address it came from; "" if that is not known. */
  client: string;
  /** The API key that did it, as it is shown; none for a session and for the shell. */
  api_key?: string | null;
}

/**
 * Notes what happened to an account, in the transaction that lets it happen. However often one kind happens, no other one
 * is forgotten for it.
 */
export async function noteSecurityEvent(app: App, tx: Db, event: SecurityEvent): Promise<void> {
  const { user_id, kind, api_key = null } = event;
  const client = event.client || null;
  const now = app.now();
  const known = await eventsOf(tx, { user_id, kind });
  const repeated = known.find(
    (one) => one.client === client && one.api_key === api_key && now - one.created < REPEATED_SECONDS,
  );
  if (repeated) return change(tx, repeated.id, { times: repeated.times + 1 });
  const row = { id: app.newId(), user_id, kind, client, api_key, created: now, times: 1, left_out: 0 };
  await tx.insertInto("security_events").values(row).execute();
  if (known.length >= FIRST_KEPT + LAST_KEPT) await makeRoom(tx, known, now - KEPT_SECONDS);
}

function eventsOf(tx: Db, { user_id, kind }: Pick<SecurityEvent, "user_id" | "kind">) {
  const events = tx.selectFrom("security_events").selectAll().where("user_id", "=", user_id);
  return events.where("kind", "=", kind).orderBy("id").execute();
}

/**
 * Makes room for one more event of a kind: deletes the oldest one once it is too old, else the one behind the first
 * ones, which is counted there as left out. `known`: all of the kind, the oldest first.
 */
async function makeRoom(tx: Db, known: SecurityEventRow[], since: number): Promise<void> {
  const [oldest] = known;
  const [last, next] = known.slice(FIRST_KEPT - 1);
  if (!oldest || !last || !next) return;
  if (oldest.created < since) return forget(tx, oldest.id);
  await change(tx, last.id, { left_out: last.left_out + next.times + next.left_out });
  await forget(tx, next.id);
}

async function change(
  tx: Db,
  id: string,
  counted: Partial<Pick<SecurityEventRow, "times" | "left_out">>,
): Promise<void> {
  await tx.updateTable("security_events").set(counted).where("id", "=", id).execute();
}

async function forget(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom("security_events").where("id", "=", id).execute();
}

/** Notes a refusal without waiting for it, so that it takes no longer than the refusal of a stranger. */
export function noteRefusal(app: App, event: SecurityEvent): void {
  app
    .write(async (tx) => {
      const user = tx.selectFrom("users").select("id").where("id", "=", event.user_id);
      if (await user.executeTakeFirst()) await noteSecurityEvent(app, tx, event);
    })
    .catch((error: unknown) => app.log.warn({ err: messageOf(error) }, "a security event was not noted"));
}

/** All that are kept, the newest first: some of each kind. */
export function listSecurityEvents(db: Db, user: UserRow) {
  return db
    .selectFrom("security_events")
    .select(["id", "kind", "client", "api_key", "created", "times", "left_out"])
    .where("user_id", "=", user.id)
    .orderBy("id", "desc")
    .execute();
}
