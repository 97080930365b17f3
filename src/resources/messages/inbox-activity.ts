import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { CANCELLED_REASON } from "./cancelled.ts";

/** How many of an account's newest failures are looked through for the last one of each inbox. */
const LOOKED_AT = 200;

/**
 * What goes on in each inbox of an account: how much has come since a moment of the last two days, how much waits,
 * and what failed last, unless something has been done since.
 */
export async function inboxActivity(app: App, user: UserRow, since = app.now() - DAY_SECONDS) {
  const inboxes = await app.db
    .selectFrom("inboxes")
    .select("id")
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  const from = Math.max(since, app.now() - 2 * DAY_SECONDS);
  const mails = await mailsSince(app, user, from);
  const waiting = await waitingOf(app, user);
  const failures = await failuresOf(app, user);
  const found = [];
  for (const { id } of inboxes) {
    const failure = failures.find(({ inbox_id }) => inbox_id === id)?.failure ?? null;
    found.push({
      inbox_id: id,
      mails: mails.get(id) ?? 0,
      waiting: waiting.get(id) ?? 0,
      last_failure: failure && (await isDoneSince(app, id, failure.message_id)) ? null : failure,
    });
  }
  return found;
}

/** Whether a message of an inbox that came after another one is done. Of many that are not, the newest are looked at. */
async function isDoneSince({ db }: App, inbox_id: string, message_id: string): Promise<boolean> {
  const newest = db
    .selectFrom("messages")
    .select("state")
    .where("inbox_id", "=", inbox_id)
    .where("id", ">", message_id)
    .orderBy("id", "desc")
    .limit(LOOKED_AT);
  const done = await db
    .selectFrom(newest.as("newest"))
    .select("state")
    .where("state", "=", "done")
    .limit(1)
    .execute();
  return done.length > 0;
}

async function mailsSince({ db }: App, { id }: UserRow, since: number): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom("messages")
    .select(({ fn }) => ["inbox_id", fn.sum<number>("mails").as("mails")])
    .where("user_id", "=", id)
    .where("id", ">=", firstIdAt(since))
    .where("source", "=", "email")
    .where("deleted_at", "is", null)
    .groupBy("inbox_id")
    .execute();
  return new Map(rows.map(({ inbox_id, mails }) => [inbox_id ?? "", mails]));
}

async function waitingOf({ db }: App, { id }: UserRow): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom("messages")
    .select(({ fn }) => ["inbox_id", fn.countAll<number>().as("messages")])
    .where("user_id", "=", id)
    .where(NOT_DONE)
    .where("state", "=", "received")
    .groupBy("inbox_id")
    .execute();
  return new Map(rows.map(({ inbox_id, messages }) => [inbox_id ?? "", messages]));
}

async function failuresOf(app: App, user: UserRow) {
  const rows: Pick<MessageRow, "id" | "inbox_id" | "error" | "created">[] = await app.db
    .selectFrom("messages")
    .select(["id", "inbox_id", "error", "created"])
    .where("user_id", "=", user.id)
    .where(NOT_DONE)
    .where("state", "=", "failed")
    // A message that its owner cancelled is no failure to look at.
    .where("reason", "is distinct from", CANCELLED_REASON)
    .where("id", ">=", firstIdAt(historySince(app, user)))
    .where("deleted_at", "is", null)
    .orderBy("id", "desc")
    .limit(LOOKED_AT)
    .execute();
  return rows.map(({ id, inbox_id, error, created }) => ({
    inbox_id,
    failure: { message_id: id, error: error ?? "", created },
  }));
}
