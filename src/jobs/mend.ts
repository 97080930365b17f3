import type { App } from "../app.ts";
import { damagedJobs, JOB_COUNTS, JOB_STATUSES, PLACE_IN_LANE } from "../db/damaged-jobs.ts";
import type { Db } from "../db/database.ts";
import type { JobRow } from "../db/schema.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";
import { JOB_KINDS, type JobKind } from "./kinds.ts";
import { PAUSED_AT } from "./paused.ts";
import { DEAD, shareOf, UNCLAIMED } from "./queue.ts";
import { endLost, type JobHandlers, UNREADABLE } from "./run-job.ts";

/**
 * Mends jobs whose rows are damaged so that they would never be begun. One whose kind or status is unknown is set aside, as nobody
 * knows what it is for or how far it was; any other begins anew.
 */
export async function mendJobs(app: App, tx: Db, handlers: JobHandlers): Promise<void> {
  for (const row of await damagedJobs(tx, {
    kinds: JOB_KINDS,
    last: PAUSED_AT,
    steady_now: app.steadyNow(),
  })) {
    const { id, kind } = row;
    app.log.error({ job_id: id, kind }, "the row of a job is damaged in the database");
    const is_known = JOB_KINDS.includes(kind as JobKind);
    if (is_known && JOB_STATUSES.includes(row.status)) {
      await beginAnew(app, tx, row);
      continue;
    }
    await tx
      .updateTable("jobs")
      .set({ ...DEAD, run_at: app.now(), last_error: UNREADABLE })
      .where("id", "=", id)
      .execute();
    const share = row.account === null ? null : shareOf(row.account, null);
    // Nobody can say what a job of an unknown kind was for, so every kind looks for rows without a job.
    for (const one of is_known ? [kind as JobKind] : JOB_KINDS)
      await endLost(app, tx, handlers[one], { share });
  }
}

/** Returns a function that mends the queue once an hour, however often it is called. */
export function mendHourly(app: App, handlers: JobHandlers): () => Promise<void> {
  let due = app.steadyAfter(HOUR_SECONDS);
  return async () => {
    if (app.steadyNow() < due) return;
    due = app.steadyAfter(HOUR_SECONDS);
    await app.write((tx) => mendJobs(app, tx, handlers));
    app.worker?.wakeAll();
  };
}

/** Returns a function that looks through the database once a day, however often it is called: a disk damages it at any time. */
export function lookThroughDaily(app: App): () => Promise<void> {
  let due = app.steadyAfter(DAY_SECONDS);
  return async () => {
    if (app.steadyNow() < due) return;
    due = app.steadyAfter(DAY_SECONDS);
    if ((await app.upkeep.lookThrough()) === "mended") app.worker?.wakeAll();
  };
}

/** Makes a damaged job claimable again: at its time if that can be read, else now. */
async function beginAnew(app: App, tx: Db, row: JobRow): Promise<void> {
  const lost = JOB_COUNTS.filter((name) => typeof row[name] !== "number");
  const is_time = typeof row.run_at === "number" && row.run_at <= PAUSED_AT;
  await tx
    .updateTable("jobs")
    .set({
      ...UNCLAIMED,
      ...Object.fromEntries(lost.map((name) => [name, 0])),
      ...(is_time ? {} : { run_at: app.now() }),
      ...(typeof row.account_slots === "number" ? {} : { account_slots: null }),
      // The next claim sees whether its time has come.
      later: 1,
      behind: PLACE_IN_LANE,
    })
    .where("id", "=", row.id)
    .execute();
}
