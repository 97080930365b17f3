import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ScheduleRow } from "../../db/schema.ts";
import { enqueue } from "../../jobs/queue.ts";
import { deleteWaitingJobWithKey } from "../../jobs/remove.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { isTime } from "../../lib/is-time.ts";
import { ALL_TIMES_OVER, timeAfterRun } from "./times.ts";

/** Schedules that are looked at in one step. */
const AT_ONCE = 200;

const KEY = "schedule ";

function keyOf(id: string): string {
  return KEY + id;
}

/** Has the job of a schedule run at its next time, and no job where there is none. A job that runs now looks again by itself. */
export async function planDue(
  app: App,
  tx: Db,
  { id, next_at }: Pick<ScheduleRow, "id" | "next_at">,
): Promise<void> {
  await deleteWaitingJobWithKey(tx, { dedupe_key: keyOf(id) });
  if (next_at === null) return;
  const work = { kind: "run_schedule", payload: { schedule_id: id }, dedupe_key: keyOf(id) } as const;
  await enqueue(app, tx, { ...work, run_at: next_at });
}

export async function forgetDue(tx: Db, { id }: Pick<ScheduleRow, "id">): Promise<void> {
  await deleteWaitingJobWithKey(tx, { dedupe_key: keyOf(id) });
}

/**
 * Sees to it that each schedule has its job: at a start, where one may have been lost, and when the clock was set back, after which
 * a time may lie too far ahead, or one may have ended in a future that is none.
 */
export async function planAllDue(app: App, tx: Db): Promise<void> {
  let after = "";
  for (;;) {
    const rows = await tx
      .selectFrom("schedules")
      .leftJoin("jobs", (join) =>
        join.on("jobs.dedupe_key", "=", (eb) => eb(eb.val(KEY), "||", eb.ref("schedules.id"))),
      )
      .selectAll("schedules")
      .select("jobs.run_at")
      .where((eb) =>
        eb.or([
          eb("schedules.status", "=", "active"),
          eb.and([
            eb("schedules.status", "=", "ended"),
            eb("schedules.reason", "=", ALL_TIMES_OVER),
            eb("schedules.last_at", ">", app.now() + DAY_SECONDS),
          ]),
        ]),
      )
      .where("schedules.id", ">", after)
      .orderBy("schedules.id")
      .limit(AT_ONCE)
      .execute();
    for (const row of rows) await planOne(app, tx, row);
    if (rows.length < AT_ONCE) return;
    after = rows.at(-1)?.id ?? "";
  }
}

async function planOne(app: App, tx: Db, row: ScheduleRow & { run_at: number | null }): Promise<void> {
  const { id } = row;
  const next_at = nextOf(row, app.now());
  // Nearly always all is as it should be, and nothing is written.
  const is_planned = next_at === row.next_at && row.run_at !== null && row.run_at <= (next_at ?? 0);
  if (next_at === null || is_planned) return;
  await tx
    .updateTable("schedules")
    .set({ next_at, status: "active", reason: null })
    .where("id", "=", id)
    .execute();
  await planDue(app, tx, { id, next_at });
}

/** The next time of a schedule, where it was not planned by a clock that was ahead; else the first one from now on. */
function nextOf(row: ScheduleRow, now: number): number | null {
  // A run of such a clock says nothing about the next one either; one of a clock that was a little ahead was made.
  const last = row.last_at !== null && row.last_at <= now + DAY_SECONDS ? row.last_at : null;
  const soonest = timeAfterRun(row, { now, last });
  // A damaged disk may have left what is no time.
  const planned = isTime(row.next_at) ? row.next_at : null;
  return planned === null || (soonest !== null && soonest < planned) ? soonest : planned;
}
