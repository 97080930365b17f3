import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import type { Whose } from "../resources/billing/storage.ts";
import { MINUTE_SECONDS } from "../lib/durations.ts";
import { anyKeyed, dropKeyed, type KeyRange } from "./keyed.ts";

const PREFIX = "credits:";

/** How long a job waits that nobody wakes, as where credits were bought, or what stood before it was cancelled. */
const LOOK_AGAIN_SECONDS = 5 * MINUTE_SECONDS;

/** A place in the line of an account in which messages wait for a credit: the household's first, each by its age. */
export interface Place {
  user_id: string;
  whose: Whose;
  message_id: string;
}

function keyOf({ user_id, whose, message_id }: Place): string {
  return `${PREFIX}${user_id}:${whose}:${message_id}`;
}

/**
 * Returns what a job is put into the queue with that waits for a credit until a moment (unix seconds). It has no lane: what holds the
 * credit may come after it in its conversation.
 */
export function untilCredit(app: App, place: Place, until: number): { run_at: number; dedupe_key: string } {
  return { run_at: Math.min(until, app.after(LOOK_AGAIN_SECONDS)), dedupe_key: keyOf(place) };
}

/** Whether a job waits for a credit. */
export function waitsForCredit({ dedupe_key }: Pick<JobRow, "dedupe_key">): boolean {
  return dedupe_key?.startsWith(PREFIX) === true;
}

/** Whether a message of this account waits for a credit before this place. */
export async function isBehindOthers(tx: Db, place: Place): Promise<boolean> {
  const found = await anyKeyed(tx, { ...rangeOf(place.user_id), below: keyOf(place) });
  return found.length > 0;
}

/** Has the first message that waits for a credit of this account looked at now. */
export async function wakeFirst(app: App, tx: Db, user_id: string): Promise<void> {
  const woken = await moveFirst(tx, { ...rangeOf(user_id), now: app.now() });
  if (woken.length > 0) app.worker?.wake("route_message");
}

/** Takes the first `limit` jobs that wait for a credit of this account out of the queue. Returns the ids of their messages. */
export async function dropFirst(tx: Db, user_id: string, limit: number): Promise<string[]> {
  const dropped = await dropKeyed(tx, { ...rangeOf(user_id), limit });
  return dropped.map(({ dedupe_key }) => dedupe_key?.split(":").at(-1) ?? "");
}

function rangeOf(user_id: string): KeyRange {
  return { from: `${PREFIX}${user_id}:`, below: `${PREFIX}${user_id};` };
}

const moveFirst = prepared((db, { from, below, now }: KeyRange & { now: number }) =>
  db
    .updateTable("jobs")
    .set({ run_at: now })
    .where("id", "=", (eb) =>
      eb
        .selectFrom("jobs as first")
        .select("first.id")
        .where("first.dedupe_key", ">", from)
        .where("first.dedupe_key", "<", below)
        .orderBy("first.dedupe_key")
        .limit(1),
    )
    .where("status", "=", "pending")
    .where("run_at", ">", now)
    .returning("id"),
);
