import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ScheduleRow } from "../../db/schema.ts";
import { hasten } from "../../jobs/hasten.ts";
import { enqueue } from "../../jobs/queue.ts";
import { deleteWaitingJobWithKey } from "../../jobs/remove.ts";
import { timeAfterRun } from "./times.ts";

/** Schedules that are looked at in one step. */
const AT_ONCE = 200;

function keyOf(id: string): string {
  return `schedule ${id}`;
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
 * a time may lie too far ahead.
 */
export async function planAllDue(app: App, tx: Db): Promise<void> {
  let after = "";
  for (;;) {
    const rows = await tx
      .selectFrom("schedules")
      .selectAll()
      .where("status", "=", "active")
      .where("id", ">", after)
      .orderBy("id")
      .limit(AT_ONCE)
      .execute();
    for (const row of rows) await planOne(app, tx, row);
    if (rows.length < AT_ONCE) return;
    after = rows.at(-1)?.id ?? "";
  }
}

async function planOne(app: App, tx: Db, row: ScheduleRow): Promise<void> {
  const { id, last_at } = row;
  const now = app.now();
  // A run of a clock that was ahead says nothing about the next one.
  const last = last_at !== null && last_at <= now ? last_at : null;
  const soonest = timeAfterRun(row, { now, last });
  const next_at = row.next_at === null || (soonest !== null && soonest < row.next_at) ? soonest : row.next_at;
  if (next_at === null) return;
  if (next_at !== row.next_at)
    await tx.updateTable("schedules").set({ next_at }).where("id", "=", id).execute();
  const due = { kind: "run_schedule", dedupe_key: keyOf(id), run_at: next_at } as const;
  if (!(await enqueue(app, tx, { ...due, payload: { schedule_id: id } }))) await hasten(app, tx, due);
}
