import { setImmediate } from "node:timers/promises";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { ScheduleRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { factsOf } from "../messages/states.ts";
import { momentWords, patternWords } from "./shown-times.ts";
import { type Times, timesAfter } from "./times.ts";

/** How many of its next times are shown. */
const SHOWN_TIMES = 3;

/** What came in since its last run and is the material of a schedule; members that are null do not matter. */
export interface Over {
  /** Null: all inboxes of the account. */
  inbox_id: string | null;
  tag: string | null;
  /** The name of a rule that was for it. */
  rule: string | null;
}

export type ScheduleView = ReturnType<typeof viewOf>;

/** All schedules of a user, the oldest first. */
export async function listSchedules(db: Db, user: UserRow): Promise<ScheduleView[]> {
  const rows = await withOrder(db).where("schedules.user_id", "=", user.id).orderBy("schedules.id").execute();
  const views: ScheduleView[] = [];
  for (const row of rows) {
    // The times of one take long enough to be worked out in a turn of the event loop.
    await setImmediate();
    views.push(viewOf(row));
  }
  return views;
}

export async function readSchedule(db: Db, user: UserRow, id: string): Promise<ScheduleView> {
  const row = await withOrder(db)
    .where("schedules.id", "=", id)
    .where("schedules.user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw noSchedule();
  return viewOf(row);
}

/** The user's own schedule, or `not_found`, whether it is unknown or somebody else's. */
export async function ownSchedule(db: Db, user: Pick<UserRow, "id">, id: string): Promise<ScheduleRow> {
  const row = await db
    .selectFrom("schedules")
    .selectAll()
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw noSchedule();
  return row;
}

export const scheduleById = prepared((db, key: { id: string }) =>
  db.selectFrom("schedules").selectAll().where("id", "=", key.id),
);

function noSchedule(): AppError {
  return new AppError("not_found", "There is no such schedule.");
}

/** Says when it runs, and how to end it. */
export function promiseOf(times: Times, now: number): string {
  const { pattern, timezone, until } = times;
  const next = timesAfter(times, now, SHOWN_TIMES).map((second) => momentWords(second, timezone));
  const often = pattern === null ? "once" : patternWords(pattern);
  const end = until === null ? "" : `, until ${momentWords(until, timezone)}`;
  return [
    `This runs ${often}${end} (${timezone}).`,
    next.length === 1
      ? `That is: ${next[0]}.`
      : `The next times are:\n\n${next.map((time) => `- ${time}`).join("\n")}`,
  ].join("\n\n");
}

export function overOf({ over }: Pick<ScheduleRow, "over">): Over | null {
  return over === null ? null : storedJson<Over | null>(over, null);
}

function withOrder(db: Db) {
  return db
    .selectFrom("schedules")
    .innerJoin("messages as origin", "origin.id", "schedules.message_id")
    .selectAll("schedules")
    .select(["origin.instruction", "origin.sender"])
    .leftJoin("messages as run", (join) =>
      join.on("run.id", "=", (eb) =>
        eb
          .selectFrom("messages as any_run")
          .select((any) => any.fn.max("any_run.id").as("id"))
          .whereRef("any_run.schedule_id", "=", "schedules.id"),
      ),
    )
    .select(["run.id as run_id", "run.state as run_state"]);
}

type WithOrder = ScheduleRow & {
  instruction: string | null;
  sender: string | null;
  run_id: string | null;
  run_state: Parameters<typeof factsOf>[0] | null;
};

function viewOf(row: WithOrder) {
  const { status, next_at } = row;
  const coming = status === "active" && next_at !== null ? timesAfter(row, next_at - 1, SHOWN_TIMES) : [];
  return {
    id: row.id,
    inbox_id: row.inbox_id,
    message_id: row.message_id,
    title: row.title,
    instruction: row.instruction ?? "",
    every: row.pattern,
    at: row.at,
    in_words: row.pattern === null ? null : patternWords(row.pattern),
    timezone: row.timezone,
    until: row.until,
    over: overOf(row),
    status,
    reason: row.reason,
    next_times: coming,
    failures: row.failures,
    created_by: row.sender,
    last_run:
      row.run_id === null || row.run_state === null
        ? null
        : { message_id: row.run_id, status: factsOf(row.run_state).activity },
    created: row.created,
    updated: row.updated,
  };
}
