import { knownZone } from "../lib/written-moment.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow, ScheduleRow, UserRow } from "../db/schema.ts";
import { userById } from "../db/users.ts";
import { AppError, fullText } from "../errors.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { haltSchedule } from "../resources/schedules/run-ends.ts";
import {
  addSchedule,
  giveTimes,
  isTimed,
  refuseRevival,
  refuseTooMany,
  titleOf,
} from "../resources/schedules/schedules.ts";
import { whyNoRule } from "../resources/schedules/named-rule.ts";
import { timesFor, type TimeWords, type Unclear } from "../resources/schedules/times-for.ts";
import type { Times } from "../resources/schedules/times.ts";
import { type Over, promiseOf } from "../resources/schedules/view.ts";
import { beginsWithStop } from "../trust/guard/written-orders.ts";
import { askForTimes } from "./ask-for-times.ts";
import type { Ending, Run } from "./close.ts";
import type { Understanding } from "./read-instruction.ts";
import { warningStep } from "./steps.ts";

const TIME_FLAGS = ["every", "at", "tz", "until"] as const;
const FLAGS = [...TIME_FLAGS, "over"];
const NOTHING_TO_DO =
  "It is not said what is to be done at these times. Write that below them, or give the inbox an instruction of its own.";
const HOW_TO_END = "To end it, answer this mail with the word stop on its first line.";
const HOW_TO_CHANGE = "To change its times, answer with nothing but other ones, such as:";
const BY_CALL = "To end it, or to change its times, open the page “Schedules”, or use `/v1/schedules`.";

/** Whether the options of an instruction have one about times. */
export function isAboutTimes(options: Record<string, unknown>): boolean {
  return FLAGS.some((name) => options[name] !== undefined);
}

/** The end of a run that is about a schedule, and what is written with it. */
export interface Scheduled {
  ending: Ending;
  /** Called in the transaction that closes the run. */
  alongside?: (tx: Db) => Promise<void>;
}

/** Whether the words of a message may make a schedule. A run of a schedule makes none. */
export function maySchedule(message: Pick<MessageRow, "authority" | "schedule_id">): boolean {
  return message.schedule_id === null && hasAuthority(message);
}

/**
 * Does what an instruction says about times instead of working on it: makes a schedule of it, gives another time to the schedule
 * whose mail it answers, or ends that. Undefined where it says nothing of the kind.
 */
export async function schedule(app: App, run: Run, asked: Understanding): Promise<Scheduled | undefined> {
  const { message, input, command } = run;
  if (!maySchedule(message)) return undefined;
  if (beginsWithStop(input.opening)) return stopped(app, run);
  if (!isAboutTimes(command.options)) {
    if (SAYS_STOP.test(firstLineOf(input.opening))) await tellHowToEnd(app, run);
    return undefined;
  }
  if (message.source === "test")
    return failed(
      "A test makes nothing that lasts. Write the same to the inbox by mail, or make a schedule on its page.",
    );
  // A link or a program may have filled in a subject alone: nothing lasting comes of that.
  if (!input.names)
    return failed("Times count in the text of a mail alone, and not in its subject. Write them there.");
  const [user] = await userById(app.db, { id: message.user_id });
  if (!user) return undefined;
  const answered = await scheduleIn(app.db, run);
  const changes = asked.instruction === "" || asked.is_standing ? answered : undefined;
  return makeOrChange(app, run, { user, asked, changes });
}

/** Words by which people may mean a schedule to end; what they mean for certain is the word alone. */
const SAYS_STOP = /\b(stop|cancel|unsubscribe|quit|end (it|this|that))\b/i;

function firstLineOf(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}

/** Says that a schedule goes on, where its mail was answered with words that may have been meant to end it. */
async function tellHowToEnd(app: App, run: Run): Promise<void> {
  const found = await scheduleIn(app.db, run);
  if (found?.status !== "active") return;
  run.steps.push(
    warningStep(
      `The schedule “${found.title}” goes on. To end it, answer with nothing but the word stop on the first line.`,
    ),
  );
}

async function makeOrChange(
  app: App,
  run: Run,
  { user, asked, changes }: { user: UserRow; asked: Understanding; changes: ScheduleRow | undefined },
): Promise<Scheduled> {
  const { options } = run.command;
  const flags = Object.fromEntries(
    TIME_FLAGS.map((name) => [name, worded(options[name])]),
  ) as unknown as TimeWords;
  const known = changes && isTimed(changes) ? changes : undefined;
  const read = timesFor(flags, {
    now: app.now(),
    timezone: known?.timezone ?? knownZone(user.timezone),
    known,
  });
  const over = await overOf(app, run);
  if ("problem" in over) return failed(over.problem);
  if ("unclear" in read) return askBack(app, run, { user, unclear: read.unclear, over: over.over, changes });
  const is_empty = asked.instruction === "" && run.input.plain && over.over === null;
  if (is_empty && !changes) return failed(NOTHING_TO_DO);
  return settle(app, run, { user, times: read.times, over: over.over, changes });
}

interface Ordered {
  user: UserRow;
  times: Times;
  over: Over | null;
  /** The schedule that gets these times; undefined where a new one is made. */
  changes: ScheduleRow | undefined;
}

async function settle(app: App, run: Run, ordered: Ordered): Promise<Scheduled> {
  const { user, times, changes } = ordered;
  const promise = promiseOf(times, app.now());
  if (run.settings.dry_run)
    return { ending: free(`Nothing was done and nothing was charged.\n\n${promise}`) };
  const refused = await refusalOf(() =>
    changes ? refuseRevival(app, app.db, user, changes) : refuseTooMany(app, app.db, user),
  );
  if (refused !== undefined) return failed(refused);
  return {
    ending: free(`${promise}\n\n${howToEnd(run, times)}`),
    alongside: (tx) =>
      changes ? giveTimes(app, tx, changes, { ...ordered, by: run.message }) : add(app, tx, run, ordered),
  };
}

/** A call has no mail that could be answered. */
function howToEnd({ input }: Run, { at }: Times): string {
  if (input.headers === null) return BY_CALL;
  const other = at === null ? '--every="monday 9:00"' : '--at="tomorrow 9:00"';
  return `${HOW_TO_END} ${HOW_TO_CHANGE}\n\n    ${other}`;
}

/** Asks what was meant, and keeps the order so that an answer with a time is enough. */
async function askBack(
  app: App,
  run: Run,
  {
    user,
    unclear,
    over,
    changes,
  }: { user: UserRow; unclear: Unclear; over: Over | null; changes: ScheduleRow | undefined },
): Promise<Scheduled> {
  const { member, code } = unclear;
  const typed = worded(run.command.options[member]) ?? "";
  const is_asked = code === "unclear_time" && (member === "every" || member === "at") && typed !== "";
  const from_model = is_asked ? await askForTimes(app, run, { typed, member, user }) : undefined;
  const proposals =
    from_model ?? unclear.proposals.map((value) => ({ line: asFlag(member, value), words: "" }));
  const list = proposals.map(({ line, words }) => `${words === "" ? "" : `${words}:\n\n`}    ${line}`);
  const result = [
    unclear.message,
    ...(list.length === 0 ? [] : ["Answer this mail with one line, such as:", ...list]),
    "Nothing is done before that.",
  ].join("\n\n");
  const ending = from_model === undefined ? free(result) : charged(run, result);
  if (changes || run.settings.dry_run) return { ending };
  const full = await refusalOf(() => refuseTooMany(app, app.db, user));
  if (full !== undefined) return failed(full);
  return { ending, alongside: (tx) => add(app, tx, run, { user, times: null, over }) };
}

function asFlag(name: string, value: string): string {
  return `--${name}=${value.includes(" ") ? `"${value}"` : value}`;
}

async function stopped(app: App, run: Run): Promise<Scheduled | undefined> {
  const found = await scheduleIn(app.db, run);
  if (found === undefined) return undefined;
  const result =
    found.status === "ended"
      ? `“${found.title}” had ended already.`
      : `“${found.title}” has ended: it does not run any more.`;
  return {
    ending: free(result),
    async alongside(tx) {
      await haltSchedule(tx, found, { status: "ended", reason: null, updated: app.now() });
    },
  };
}

/** The schedule whose mail a message answers: the owner's any, a listed sender's only one that they made. */
async function scheduleIn(db: Db, { message }: Run): Promise<ScheduleRow | undefined> {
  if (message.conversation_id === null) return undefined;
  const { user_id, conversation_id } = message;
  const found = await schedulesOf(db, { user_id, conversation_id });
  const own = found.filter(({ sender }) => message.authority === "owner" || sender === message.sender);
  return own.find(({ status }) => status !== "ended") ?? own[0];
}

/** Schedules made in a conversation, and those of which a run began it; the newest first. */
const schedulesOf = prepared((db, key: { user_id: string; conversation_id: string }) =>
  db
    .selectFrom("schedules")
    .innerJoin("messages as origin", "origin.id", "schedules.message_id")
    .selectAll("schedules")
    .select("origin.sender")
    .where("schedules.user_id", "=", key.user_id)
    .where((eb) =>
      eb.or([
        eb("origin.conversation_id", "=", key.conversation_id),
        eb(
          "schedules.id",
          "in",
          eb
            .selectFrom("messages as run")
            .select("run.schedule_id")
            .where("run.conversation_id", "=", key.conversation_id)
            .where("run.schedule_id", "is not", null)
            .$castTo<{ schedule_id: string }>(),
        ),
      ]),
    )
    .orderBy("schedules.id", "desc"),
);

async function add(
  app: App,
  tx: Db,
  { message, inbox, command }: Run,
  { user, times, over }: { user: UserRow; times: Times | null; over: Over | null },
): Promise<void> {
  const title = titleOf(message.raw_mail_id !== null && message.subject ? message.subject : command.command);
  await addSchedule(app, tx, user, { inbox, message_id: message.id, title, times, over });
}

/** Reads `--over`: `inbox`, `all`, `#tag` or `tag:NAME`, `rule:NAME`. It is the owner's, as it reads what others sent. */
async function overOf(
  app: App,
  { command, message, inbox }: Run,
): Promise<{ over: Over | null } | { problem: string }> {
  const value = command.options["over"];
  if (value === undefined) return { over: null };
  if (message.authority !== "owner")
    return { problem: "--over is the owner's to use, as it reads mail that others have sent to this inbox." };
  const over = namedIn(String(value).trim(), inbox.id);
  if (over) {
    const problem = await whyNoRule(app.db, message.user_id, over);
    return problem === null ? { over } : { problem };
  }
  return {
    problem: `It is not clear what --over=${String(value)} is. Write --over=inbox, --over=all, --over="#tag" or --over="rule:NAME".`,
  };
}

function namedIn(text: string, inbox_id: string): Over | undefined {
  const whole = { inbox_id, tag: null, rule: null };
  if (/^inbox$/i.test(text)) return whole;
  if (/^all$/i.test(text)) return { ...whole, inbox_id: null };
  const [, tag] = /^(?:tag:|#)\s*(\S.*)$/i.exec(text) ?? [];
  if (tag !== undefined) return { ...whole, tag: tag.toLowerCase() };
  const [, rule] = /^rule:\s*(\S.*)$/i.exec(text) ?? [];
  return rule === undefined ? undefined : { ...whole, rule };
}

function worded(value: string | boolean | undefined): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : "";
}

function free(result: string): Ending {
  return { state: "done", result, model: null, usage: null, free: true };
}

function charged({ connection }: Run, result: string): Ending {
  return { state: "done", result, model: connection?.model ?? null, usage: null };
}

function failed(error: string): Scheduled {
  return { ending: { state: "failed", reason: "schedule_refused", error } };
}

async function refusalOf(check: () => Promise<void>): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return fullText(error);
    throw error;
  }
}
