import { knownZone } from "../../lib/written-moment.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow, ScheduleRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { storeOrder } from "../../inbound/accept-scheduled.ts";
import { oneLine } from "../../lib/one-line.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import { refuseUnverified } from "../accounts/verified.ts";
import { refuseOverCap } from "../billing/plans.ts";
import { namedOrDefaultInboxId } from "../inboxes/default-inbox.ts";
import { ownInbox } from "../inboxes/inboxes.ts";
import { refuseResting } from "../inboxes/room.ts";
import { refuseBadTexts } from "../messages/call-texts.ts";
import { attachmentsOf, messageById } from "../messages/messages.ts";
import { sizeOfRaw } from "../messages/retry.ts";
import { forgetDue, planDue } from "./plan.ts";
import { whyNoRule } from "./named-rule.ts";
import type { NewSchedule, ScheduleInput } from "./shapes.ts";
import { TOO_LATE, timesFor } from "./times-for.ts";
import { type Times, timesAfter } from "./times.ts";
import { type Over, ownSchedule, promiseOf, readSchedule, type ScheduleView } from "./view.ts";

const MAX_TITLE_CHARS = 200;

/** Makes a schedule for an instruction, which is stored as a message that is worked on at each of its times. */
export async function createSchedule(app: App, caller: Caller, input: NewSchedule): Promise<ScheduleView> {
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "schedule_created");
    return makeSchedule(app, tx, caller, input);
  });
}

/** Makes a schedule in the transaction of the caller. */
export async function makeSchedule(
  app: App,
  tx: Db,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  input: NewSchedule,
): Promise<ScheduleView> {
  refuseUnverified(user);
  const instruction = input.instruction.trim();
  const { content } = input;
  refuseBadTexts({ instruction, ...(content === undefined ? {} : { content }) });
  const times = timesOf(app, user, input);
  const inbox = await ownInbox(tx, user, await namedOrDefaultInboxId(tx, user, input.inbox_id));
  await refuseResting(app, tx, user, inbox);
  const over = await checkedOver(tx, user, input.over ?? null);
  const title = input.title === undefined ? titleOf(instruction) : checkedTitle(input.title);
  const result = promiseOf(times, app.now());
  const order = { inbox, user, key_id, subject: title, instruction, content: content ?? null, result };
  const message = await storeOrder(app, tx, order);
  const id = await addSchedule(app, tx, user, { inbox, message_id: message.id, title, times, over });
  return readSchedule(tx, user, id);
}

export interface Added {
  inbox: Pick<InboxRow, "id">;
  message_id: string;
  title: string;
  /** Null: when it is to run was not clear, and it waits for a time. */
  times: Times | null;
  over: Over | null;
}

/** Adds a schedule in the transaction of the caller, and returns its id. Throws where the plan allows no more. */
export async function addSchedule(app: App, tx: Db, user: UserRow, added: Added): Promise<string> {
  await refuseTooMany(app, tx, user);
  const { times, over, inbox, title, message_id } = added;
  const [next = null] = times === null ? [] : timesAfter(times, app.now(), 1);
  const now = app.now();
  const row: ScheduleRow = {
    id: app.newId(),
    user_id: user.id,
    inbox_id: inbox.id,
    message_id,
    title,
    ...(times ?? { pattern: null, at: null, timezone: knownZone(user.timezone), until: null }),
    over: over === null ? null : JSON.stringify(over),
    read_up_to: null,
    status: times === null ? "unclear" : "active",
    reason: null,
    next_at: next,
    last_at: null,
    failures: 0,
    created: now,
    updated: now,
  };
  await tx.insertInto("schedules").values(row).execute();
  await planDue(app, tx, row);
  return row.id;
}

/** Throws `plan_limit_reached` where an account may not have one more schedule. What has ended does not count. */
export async function refuseTooMany(app: App, db: Db, user: UserRow): Promise<void> {
  const { count } = await db
    .selectFrom("schedules")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .where("status", "!=", "ended")
    .executeTakeFirstOrThrow();
  refuseOverCap(app, user, "schedules", { wanted: count + 1 });
}

/**
 * Changes a schedule as RFC 7396 has it. Other times have it run again where it had ended; another instruction is
 * stored as another message, so that earlier runs still say what they did.
 */
export async function patchSchedule(
  app: App,
  caller: Caller,
  { id, input }: { id: string; input: ScheduleInput },
): Promise<ScheduleView> {
  const { user } = caller;
  return app.write(async (tx) => {
    const row = await ownSchedule(tx, user, id);
    if (Object.keys(input).length === 0) return readSchedule(tx, user, id);
    await noteChange(app, tx, caller, "schedule_changed");
    const changed = { ...row, ...(await columnsOf(app, tx, caller, { row, input })), updated: app.now() };
    if (row.status === "ended" && changed.status !== "ended") await refuseTooMany(app, tx, user);
    const is_active = changed.status === "active";
    if (row.status !== "active" && is_active) await refuseWithoutOrder(tx, changed);
    if (is_active && (row.status !== "active" || input.paused === false)) await takeOver(tx, changed, caller);
    const next_at = nextAfterChange(app, row, changed);
    await tx
      .updateTable("schedules")
      .set({ ...changed, next_at })
      .where("id", "=", id)
      .execute();
    await planDue(app, tx, { id, next_at });
    return readSchedule(tx, user, id);
  });
}

/** Has whoever lets a schedule go on that a key has made answer for it: once that key is revoked, it runs for nobody else. */
async function takeOver(
  tx: Db,
  { message_id, user_id }: Pick<ScheduleRow, "message_id" | "user_id">,
  { key_id }: Pick<Caller, "key_id">,
): Promise<void> {
  await tx
    .updateTable("messages")
    .set({ key_id })
    .where("id", "=", message_id)
    .where("user_id", "=", user_id)
    .where("key_id", "is not", null)
    .execute();
}

/** The next time of a schedule that was changed. A time that is due stays due, unless it has other times now. */
function nextAfterChange(app: App, before: ScheduleRow, after: ScheduleRow): number | null {
  if (after.status !== "active") return null;
  const is_timed_anew = (["pattern", "at", "timezone", "until"] as const).some(
    (name) => before[name] !== after[name],
  );
  if (before.status === "active" && !is_timed_anew) return before.next_at;
  const [next_at] = isTimed(after) ? timesAfter(after, app.now(), 1) : [];
  if (next_at === undefined) throw invalid(...TOO_LATE);
  return next_at;
}

/** Throws where the message of a schedule is no longer kept: once it has ended, its mail is deleted like any other. */
async function refuseWithoutOrder(db: Db, { message_id }: ScheduleRow): Promise<void> {
  const [origin] = await messageById(db, { id: message_id });
  if (origin) await sizeOfRaw(db, origin);
}

/** Throws where a schedule that has ended may not be given times again. */
export async function refuseRevival(app: App, db: Db, user: UserRow, schedule: ScheduleRow): Promise<void> {
  if (schedule.status === "ended") await refuseTooMany(app, db, user);
  await refuseWithoutOrder(db, schedule);
}

/** Sets other times of a schedule, and what it is over if that is said, after which it runs again, in the transaction of the caller. */
export async function giveTimes(
  app: App,
  tx: Db,
  schedule: Pick<ScheduleRow, "id" | "message_id" | "user_id">,
  { times, over, by }: { times: Times; over: Over | null; by: Pick<Caller, "key_id"> },
): Promise<void> {
  const { id } = schedule;
  const { pattern, at, timezone, until } = times;
  const [next_at = null] = timesAfter(times, app.now(), 1);
  await tx
    .updateTable("schedules")
    .set({ pattern, at, timezone, until, next_at, ...REVIVED, updated: app.now() })
    .$if(over !== null, (query) => query.set({ over: JSON.stringify(over) }))
    .where("id", "=", id)
    .execute();
  await takeOver(tx, schedule, by);
  await planDue(app, tx, { id, next_at });
}

/** Deletes a schedule; what its runs have done stays. */
export async function deleteSchedule(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "schedule_deleted");
    const row = await ownSchedule(tx, caller.user, id);
    await tx.deleteFrom("schedules").where("id", "=", row.id).execute();
    await forgetDue(tx, row);
  });
}

export function titleOf(text: string): string {
  return oneLine(text.split("\n", 1)[0] ?? "").slice(0, MAX_TITLE_CHARS) || "Untitled";
}

export function isTimed({ pattern, at }: Times): boolean {
  return pattern !== null || at !== null;
}

async function columnsOf(
  app: App,
  tx: Db,
  caller: Caller,
  { row, input }: { row: ScheduleRow; input: ScheduleInput },
): Promise<Partial<ScheduleRow>> {
  const { user } = caller;
  const { title, instruction, over, paused, every, at, timezone, until } = input;
  const timed = [every, at, timezone, until].some((member) => member !== undefined);
  const times = timed ? { ...timesOf(app, user, input, row), ...REVIVED } : {};
  return {
    ...(title === undefined ? {} : { title: checkedTitle(title) }),
    ...(instruction === undefined
      ? {}
      : { message_id: await anotherOrder(app, tx, caller, { row, instruction }) }),
    ...(over === undefined ? {} : { over: over && JSON.stringify(await checkedOver(tx, user, over)) }),
    ...times,
    ...(paused === undefined || paused === (row.status === "paused")
      ? {}
      : pausedColumns(row, paused, timed)),
  };
}

const REVIVED = { status: "active", reason: null, failures: 0 } as const;

function pausedColumns({ status }: ScheduleRow, paused: boolean, timed: boolean): Partial<ScheduleRow> {
  if (!timed && (status === "ended" || status === "unclear"))
    throw invalid(
      "body.paused",
      "not_running",
      "This schedule has no time to come. Give it one with `every` or `at`.",
    );
  return paused ? { status: "paused", reason: null } : REVIVED;
}

async function anotherOrder(
  app: App,
  tx: Db,
  { user, key_id }: Caller,
  { row, instruction }: { row: ScheduleRow; instruction: string },
): Promise<string> {
  const inbox = await ownInbox(tx, user, row.inbox_id);
  await refuseLossOfFiles(tx, row);
  const known = await tx
    .selectFrom("message_contents")
    .select("content")
    .where("message_id", "=", row.message_id)
    .executeTakeFirst();
  const text = instruction.trim();
  refuseBadTexts({ instruction: text });
  const result = isTimed(row) ? promiseOf(row, app.now()) : "";
  const stored = {
    inbox,
    user,
    key_id,
    subject: row.title,
    instruction: text,
    content: known?.content ?? null,
    result,
  };
  return (await storeOrder(app, tx, stored)).id;
}

/** Throws where the message of a schedule has files, which another instruction would leave behind. */
async function refuseLossOfFiles(tx: Db, { message_id }: ScheduleRow): Promise<void> {
  const files = (await attachmentsOf(tx, [message_id])).get(message_id) ?? [];
  if (files.some(({ direction }) => direction === "in"))
    throw new AppError("conflict", "Another instruction would lose the files of this schedule.", {
      fix: "Make another schedule with them: send them to the inbox with the new instruction, then delete this one.",
    });
}

async function checkedOver(db: Db, user: UserRow, over: NewSchedule["over"] | null): Promise<Over | null> {
  if (over === null || over === undefined) return null;
  const { inbox_id = null, tag = null, rule = null } = over;
  if (inbox_id !== null) await ownInbox(db, user, inbox_id);
  const checked = { inbox_id, tag: tag?.toLowerCase() ?? null, rule };
  const why = await whyNoRule(db, user.id, checked);
  if (why !== null) throw invalid("body.over.rule", "not_found", why);
  return checked;
}

function checkedTitle(text: string): string {
  const title = oneLine(text);
  if (title === "") throw invalid("body.title", "too_short", "The title must not be blank.");
  if (!isLongerThan(title, MAX_TITLE_CHARS)) return title;
  throw invalid("body.title", "too_long", `The title must have at most ${MAX_TITLE_CHARS} characters.`);
}

/** The times that a body gives. What it does not name stays as in `known`. */
function timesOf(
  app: App,
  user: UserRow,
  { every, at, timezone, until }: Pick<ScheduleInput, "every" | "at" | "timezone" | "until">,
  known?: Times,
): Times {
  const read = timesFor(
    { every: every ?? undefined, at: at ?? undefined, tz: timezone, until: until ?? undefined },
    {
      now: app.now(),
      timezone: known?.timezone ?? knownZone(user.timezone),
      known: until === null && known ? { ...known, until: null } : known,
    },
  );
  if ("times" in read) return read.times;
  const { member, code, message, proposals } = read.unclear;
  throw invalid(
    `body.${member === "tz" ? "timezone" : member}`,
    code,
    proposals.length === 0
      ? message
      : `${message} Such as: ${proposals.map((one) => `"${one}"`).join(", ")}.`,
  );
}
