import type { App } from "../app.ts";
import { beginAnew, damagedJobs, hasState } from "../db/damaged-jobs.ts";
import type { Db } from "../db/database.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";
import { JOB_KINDS, type JobKind } from "./kinds.ts";
import { PAUSED_AT } from "./paused.ts";
import { shareOf } from "./queue.ts";
import { endLost, type JobHandlers, UNREADABLE } from "./run-job.ts";

/**
 * Mends jobs whose rows are damaged so that they would never be begun. One whose kind or state is none is set aside, as nobody
 * knows what it is for or how far it was; any other begins anew.
 */
export async function mendJobs(app: App, tx: Db, handlers: JobHandlers): Promise<void> {
  const last = PAUSED_AT;
  for (const row of await damagedJobs(tx, { kinds: JOB_KINDS, last, steady_now: app.steadyNow() })) {
    const { id, kind } = row;
    app.log.error({ job_id: id, kind }, "the row of a job is damaged in the database");
    const is_known = JOB_KINDS.includes(kind as JobKind);
    if (is_known && hasState(row)) {
      await beginAnew(tx, row, { now: app.now(), last });
      continue;
    }
    const dead = { status: "dead", lease_until: null, lane: null, dedupe_key: null } as const;
    await tx
      .updateTable("jobs")
      .set({ ...dead, last_error: UNREADABLE })
      .where("id", "=", id)
      .execute();
    const share = row.account === null ? null : shareOf(row.account, null);
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
