import { afterCommit } from "../../db/database.ts";
import { moreOf } from "../billing/plans.ts";
import { StorageFull } from "../billing/storage.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow, MessageRow, ScheduleRow, UserRow } from "../../db/schema.ts";
import { userById } from "../../db/users.ts";
import { AppError, fullText } from "../../errors.ts";
import { acceptScheduled } from "../../inbound/accept-scheduled.ts";
import { authorityNow } from "../../inbound/judge-sender.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { isKeyRevoked } from "../accounts/revoked-keys.ts";
import type { Caller } from "../accounts/sessions.ts";
import { inboxById } from "../inboxes/inboxes.ts";
import { hasRoom } from "../inboxes/room.ts";
import { hasAuthority } from "../messages/authority.ts";
import { holdMaterial, type Material, materialToRepeat, sizeOfRaw } from "../messages/retry.ts";
import { bytesOf } from "../messages/stored-files.ts";
import { messageById, readRun } from "../messages/messages.ts";
import type { RunView } from "../messages/view.ts";
import { haltSchedule, noteFailure, noteLeftOut, pauseSchedule } from "./run-ends.ts";
import { ownSchedule, scheduleById } from "./view.ts";
import { ALL_TIMES_OVER, areDamaged, timeAfterRun, timesAfter } from "./times.ts";

const LOOK_AGAIN_SECONDS = 60;

/** All that one run of a schedule is made of. */
interface Due {
  schedule: ScheduleRow;
  origin: MessageRow;
  inbox: InboxRow;
  user: UserRow;
}

/**
 * Has the message of a schedule worked on once more, if it is time, and plans the next time, in one transaction. What was missed
 * while the server was away is made up by one run.
 */
export async function runScheduleNow(app: App, job: Job<"run_schedule">, signal: AbortSignal): Promise<void> {
  const { schedule_id } = job.payload;
  const [planned] = await scheduleById(app.db, { id: schedule_id });
  const due = await dueOf(app.db, planned);
  const is_due = due !== undefined && isDue(app, due.schedule);
  // Asked here, where the job then waits for the disk, and not while its outcome is written, which is tried until it can be.
  if (is_due) app.refuseIntake();
  const material = is_due ? await materialOrWhy(app, due.origin) : undefined;
  const run = async (tx: Db): Promise<void> => {
    // Looked up again: it may have been changed meanwhile.
    const [row] = await scheduleById(tx, { id: schedule_id });
    const now = await dueOf(tx, row);
    if (now === undefined) return endWithoutMessage(tx, job);
    const { schedule } = now;
    if (schedule.status !== "active" || schedule.next_at === null) return finishJob(tx, job);
    if (!isDue(app, schedule)) return deferJob(tx, job, lookAgainAt(app, schedule.next_at));
    if (material === undefined) return deferJob(tx, job, app.now());
    await runOnce(app, tx, now, material);
    const [left] = await scheduleById(tx, { id: schedule_id });
    if (left?.status === "active" && left.next_at !== null) await deferJob(tx, job, left.next_at);
    else await finishJob(tx, job);
  };
  await writeOutcome(app, signal, run, { stores: bytesIn(material) });
}

function bytesIn(material: Material | { why: string } | undefined): Uint8Array[] {
  return material === undefined || "why" in material ? [] : bytesOf(material.files);
}

/** Pauses a schedule whose job was given up, as the server ended again and again in the middle of it: nothing else would tell. */
export async function giveUpSchedule(
  app: App,
  tx: Db,
  { payload }: Job<"run_schedule">,
  error: string,
): Promise<void> {
  const [schedule] = await scheduleById(tx, { id: payload.schedule_id });
  if (schedule?.status !== "active") return;
  await pauseSchedule(app, tx, schedule, `${error}. Tell the operator of this server, and let it go on.`);
}

/** Runs a schedule at once, whatever its times are; its next time stays. Throws where its message cannot be worked on. */
export async function runScheduleAtOnce(
  app: App,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  { id, admit }: { id: string; admit: () => void },
): Promise<RunView> {
  const found = await dueOf(app.db, await ownSchedule(app.db, user, id));
  app.refuseIntake();
  using _held = found && (await holdMaterial(app, found.origin));
  const material = found && (await materialOrWhy(app, found.origin));
  const run = async (tx: Db): Promise<string> => {
    app.refuseIntake();
    const due = await dueOf(tx, await ownSchedule(tx, user, id));
    if (due === undefined || material === undefined) throw conflict(NOTHING_TO_RUN, "Make another schedule.");
    if ("why" in material) throw conflict(material.why, "Make another schedule.");
    const why = await hindranceOf(app, tx, due);
    if (why !== undefined) throw conflict(why.sentence, why.mend);
    admit();
    // Whoever has it run now answers for that.
    const origin = { ...due.origin, key_id };
    return (await acceptRun(app, tx, { ...due, origin }, material)).id;
  };
  const message_id = await app.write(run, { stores: bytesIn(material) });
  return readRun(app, user, message_id);
}

/**
 * Whether the time of a schedule has come. Where the clock has leapt ahead by more than a day, that waits until the leap is believed:
 * else all that is to be done in the days between would be done now, and once more at its time when the clock is set right.
 */
function isDue(app: App, { next_at }: ScheduleRow): boolean {
  return next_at !== null && next_at <= Math.min(app.now(), app.calmNow() + DAY_SECONDS);
}

function lookAgainAt(app: App, next_at: number): number {
  return next_at > app.now() ? next_at : app.after(LOOK_AGAIN_SECONDS);
}

/** All that a run is made of; undefined where its inbox, its message or its account is gone. */
async function dueOf(db: Db, schedule: ScheduleRow | undefined): Promise<Due | undefined> {
  if (!schedule) return undefined;
  const [origin] = await messageById(db, { id: schedule.message_id });
  const [user] = await userById(db, { id: schedule.user_id });
  const [inbox] = await inboxById(db, { id: schedule.inbox_id });
  return origin && user?.deleted_at === null && inbox ? { schedule, origin, inbox, user } : undefined;
}

const NOTHING_TO_RUN = "The inbox of this schedule, or the message that it came from, has been deleted.";

async function endWithoutMessage(tx: Db, job: Job<"run_schedule">): Promise<void> {
  await haltSchedule(tx, { id: job.payload.schedule_id }, { status: "ended", reason: NOTHING_TO_RUN });
  await finishJob(tx, job);
}

const DAMAGED =
  "Its times cannot be read any more: the database is damaged there. Give it times and a time zone anew.";

/** Makes one run, or notes why there is none, and sets the next time. */
async function runOnce(app: App, tx: Db, due: Due, material: Material | { why: string }): Promise<void> {
  const { schedule } = due;
  const now = app.now();
  if (areDamaged(schedule, now)) return pauseSchedule(app, tx, schedule, DAMAGED);
  const next_at = timeAfterRun(schedule, { now, last: timeMadeUp(schedule, now) });
  const then =
    next_at === null
      ? { next_at, status: "ended" as const, reason: ALL_TIMES_OVER }
      : { next_at, reason: null };
  await tx
    .updateTable("schedules")
    .set({ ...then, last_at: now })
    .where("id", "=", schedule.id)
    .execute();
  if ("why" in material) return pauseSchedule(app, tx, schedule, material.why);
  const why = await hindranceOf(app, tx, due);
  if (why?.lasts === true) return pauseSchedule(app, tx, schedule, `${why.sentence} ${why.mend}`);
  if (why !== undefined) {
    await noteLeftOut(app, tx, schedule, why.sentence);
    // Like mail to that inbox; of a time behind which no other one comes its owner hears in any case.
    if (why.beyond_plan === true && next_at !== null)
      await tellOwnerLater(app, tx, { user_id: schedule.user_id, kind: "beyond_plan" });
    return;
  }
  try {
    await acceptRun(app, tx, due, material);
  } catch (error) {
    // Thrown before anything was written: the account is full, or the mail is no longer kept.
    if (!(error instanceof AppError)) throw error;
    if (error instanceof StorageFull) return noteNoRoom(app, tx, schedule, error);
    await pauseSchedule(app, tx, schedule, fullText(error));
  }
}

/** Notes a run that there is no message of, as the account is full, and has its owner told as of a call or mail. */
async function noteNoRoom(app: App, tx: Db, { id, user_id }: ScheduleRow, full: StorageFull): Promise<void> {
  await noteFailure(app, tx, id, fullText(full));
  const refused = { what: "run of a schedule", bytes: full.bytes, whose: "household" } as const;
  await tellOwnerLater(app, tx, { user_id, kind: "storage_full", refused });
  afterCommit(tx, () =>
    app.log.info({ schedule_id: id, user_id }, "a run of a schedule found no room in its account"),
  );
}

/**
 * The moment from which a run made now counts: its own time, so that a late one costs no other; now, where it makes up
 * for more than one.
 */
function timeMadeUp(schedule: ScheduleRow, now: number): number {
  const due = schedule.next_at ?? now;
  const [another = Number.POSITIVE_INFINITY] = timesAfter(schedule, due, 1);
  return another <= now ? now : due;
}

interface Hindrance {
  sentence: string;
  mend: string;
  /** Whether it will hinder the next runs too. */
  lasts: boolean;
  /** Whether the plan has no room for the inbox, which its owner has not chosen, as they choose a pause. */
  beyond_plan?: true;
}

async function hindranceOf(app: App, tx: Db, { origin, inbox, user }: Due): Promise<Hindrance | undefined> {
  if (inbox.paused !== null)
    return { sentence: "Its inbox was paused at that time.", mend: "Let the inbox go on.", lasts: false };
  if (!(await hasRoom(app, tx, user, inbox)))
    return {
      sentence: "Its inbox is one more than the account may have.",
      mend: `Remove an inbox that you do not need, or ${moreOf(app.config, user.plan, "inboxes")}.`,
      lasts: false,
      beyond_plan: true,
    };
  if (await isKeyRevoked(tx, origin)) return KEY_REVOKED;
  if (hasAuthority({ authority: await authorityNow(tx, { inbox, user }, origin) })) return undefined;
  return {
    sentence: `${origin.sender ?? "Whoever made it"} may not give instructions to this inbox any more.`,
    mend: "Put the address on the list “Who may write” of the inbox again, or make the schedule yourself.",
    lasts: true,
  };
}

const KEY_REVOKED: Hindrance = {
  sentence: "The API key that made it has been revoked.",
  mend: "Look at what it does, and let it go on if you want it: then it is yours. Or delete it.",
  lasts: true,
};

async function acceptRun(app: App, tx: Db, due: Due, material: Material): Promise<MessageRow> {
  const { schedule, origin, inbox, user } = due;
  const raw_size = await sizeOfRaw(tx, origin);
  return acceptScheduled(app, tx, { origin, inbox, user, ...material, raw_size, schedule });
}

async function materialOrWhy(app: App, origin: MessageRow): Promise<Material | { why: string }> {
  try {
    return await materialToRepeat(app, origin);
  } catch (error) {
    if (error instanceof AppError) return { why: fullText(error) };
    throw error;
  }
}

function conflict(message: string, fix: string): AppError {
  return new AppError("conflict", message, { fix });
}
