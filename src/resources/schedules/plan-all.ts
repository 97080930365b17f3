import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ScheduleRow } from "../../db/schema.ts";
import { planAllDue } from "./plan.ts";
import { pauseSchedule } from "./run-ends.ts";

const STATES: ScheduleRow["status"][] = ["active", "paused", "ended", "unclear"];

const DAMAGED =
  "Whether it is to run cannot be read any more: the database is damaged there. Let it go on, or delete it.";

/** Plans all schedules. One of which a damaged disk has left no state would never run again, so it pauses, and its owner is told. */
export async function planSchedules(app: App, tx: Db): Promise<void> {
  const damaged = await tx.selectFrom("schedules").selectAll().where("status", "not in", STATES).execute();
  for (const schedule of damaged) await pauseSchedule(app, tx, schedule, DAMAGED);
  await planAllDue(app, tx);
}
