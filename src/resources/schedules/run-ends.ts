import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow, ScheduleRow } from "../../db/schema.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { enqueue } from "../../jobs/queue.ts";
import { forgetDue } from "./plan.ts";
import { scheduleById } from "./view.ts";

/** How many runs in a row may fail before a schedule pauses. */
export const MAX_FAILURES = 3;

/** Notes how a run of a schedule ended, in the transaction that ends it. */
export async function noteRunEnd(
  app: App,
  tx: Db,
  run: Pick<MessageRow, "schedule_id" | "state" | "reason" | "error" | "retry_of">,
): Promise<void> {
  const { schedule_id, state, reason, error, retry_of } = run;
  if (schedule_id === null) return;
  if (state === "done") await noteSuccess(tx, { id: schedule_id });
  // A run that is tried again has failed once, and one that its owner ended has not failed.
  const is_another = retry_of === null && reason !== "cancelled";
  if (is_another && (state === "failed" || state === "limited"))
    await noteFailure(app, tx, schedule_id, error ?? state);
}

const noteSuccess = prepared((db, key: { id: string }) =>
  db
    .updateTable("schedules")
    .set({ failures: 0, reason: null })
    .where("id", "=", key.id)
    .where("failures", ">", 0),
);

/** What a run of a schedule has read. `read_from`: behind which message it began, where it is a digest. */
interface ReadByRun {
  id: string;
  message_id: string;
  read_from?: string | undefined;
  read_up_to: string;
}

/**
 * Moves what the digests of a schedule have read on, in the transaction that closes a run as done. It stays where it was moved back
 * to before the place at which the run began: else what lies between would be passed over, which the next run now reads again.
 */
export async function noteRead(
  app: App,
  tx: Db,
  { id, message_id, read_from, read_up_to }: ReadByRun,
): Promise<void> {
  if (read_from !== undefined) await noteFrom(tx, { id, message_id, read_from });
  await moveRead(tx, { id, read_from: read_from ?? "", read_up_to, to_come: idToCome(app) });
}

/** Notes on a run from where on it has read, unless the next one reads that again anyway. */
const noteFrom = prepared(
  (db, { id, message_id, read_from }: { id: string; message_id: string; read_from: string }) =>
    db
      .updateTable("messages")
      .set({ read_from })
      .where("id", "=", message_id)
      .where((eb) => {
        const schedule = eb.selectFrom("schedules").select("schedules.id").where("schedules.id", "=", id);
        return eb.exists(
          schedule.where((of) => of(of.fn.coalesce("read_up_to", of.val("")), ">=", read_from)),
        );
      }),
);

/** Has a digest read once more what a run had read whose answer did not arrive, and what came after it. */
export async function readAgain(
  tx: Db,
  { id, message_id, read_from }: { id: string; message_id: string; read_from: string },
): Promise<void> {
  await tx.updateTable("messages").set({ read_from: null }).where("id", "=", message_id).execute();
  await tx
    .updateTable("schedules")
    .set({ read_up_to: read_from === "" ? null : read_from })
    .where("id", "=", id)
    .where("read_up_to", ">", read_from)
    .execute();
}

interface Move {
  id: string;
  read_from: string;
  read_up_to: string;
  to_come: string;
}

/** Moves on only; back from nothing but what a clock that was ahead has noted. */
const moveRead = prepared((db, { id, read_from, read_up_to, to_come }: Move) =>
  db
    .updateTable("schedules")
    .set({ read_up_to })
    .where("id", "=", id)
    .where((eb) => {
      const known = eb.fn.coalesce("read_up_to", eb.val(""));
      const is_next = eb.and([eb(known, ">=", read_from), eb(known, "<", read_up_to)]);
      return eb.or([is_next, eb(known, ">=", to_come)]);
    }),
);

/** An id before which all ids lie that are given by now, but for those of a clock that was ahead by more than a month. */
export function idToCome({ orderNow }: App): string {
  return firstIdAt(orderNow() + 2);
}

/** Says on a schedule that goes on why its last run left mail to the next one. The next run takes that back. */
export const noteHeldUp = prepared((db, { id, reason }: { id: string; reason: string }) =>
  db.updateTable("schedules").set({ reason }).where("id", "=", id).where("status", "=", "active"),
);

/**
 * Notes why a schedule has left a time out. Where no other one comes, as with what was to be done once, its owner hears of it:
 * nothing else would tell.
 */
export async function noteLeftOut(app: App, tx: Db, { id }: ScheduleRow, why: string): Promise<void> {
  const left = await tx
    .updateTable("schedules")
    .set({ reason: `The last time was left out: ${why}` })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  if (left.next_at === null) await tellOwner(app, tx, left);
}

/**
 * Counts a run that failed, and says why on the schedule. A few in a row pause it, and its owner hears of it; so does the owner of a
 * single run.
 */
export async function noteFailure(app: App, tx: Db, id: string, error: string): Promise<void> {
  const [schedule] = await scheduleById(tx, { id });
  if (!schedule) return;
  const failures = schedule.failures + 1;
  const reason = `The last run failed: ${error}`;
  await tx.updateTable("schedules").set({ failures, reason }).where("id", "=", id).execute();
  if (schedule.pattern === null) return tellOwner(app, tx, schedule);
  if (failures < MAX_FAILURES || schedule.status !== "active") return;
  await pauseSchedule(app, tx, schedule, `${failures} runs in a row have failed, the last one so: ${error}`);
}

/** Pauses a schedule that cannot go on, and tells its owner why. */
export async function pauseSchedule(app: App, tx: Db, schedule: ScheduleRow, reason: string): Promise<void> {
  await haltSchedule(tx, schedule, { status: "paused", reason });
  await tellOwner(app, tx, schedule);
}

/** Has a schedule run no more, and takes its job out of the queue unless that runs. */
export async function haltSchedule(
  tx: Db,
  { id }: Pick<ScheduleRow, "id">,
  change: Pick<ScheduleRow, "status" | "reason"> & Partial<Pick<ScheduleRow, "updated">>,
): Promise<void> {
  await tx
    .updateTable("schedules")
    .set({ ...change, next_at: null })
    .where("id", "=", id)
    .execute();
  await forgetDue(tx, { id });
}

async function tellOwner(app: App, tx: Db, { id, user_id }: ScheduleRow): Promise<void> {
  const payload = { user_id, kind: "schedule_failed", schedule_id: id } as const;
  await enqueue(app, tx, { kind: "mail_notice", payload, dedupe_key: `schedule_failed ${id}` });
}
