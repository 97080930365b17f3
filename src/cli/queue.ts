import { Argument, Command, Option } from "commander";
import { dropJob, retryJob } from "../operation/admin/change-job.ts";
import {
  hold,
  JOB_STATES,
  type JobState,
  type JobView,
  listQueue,
  release,
} from "../operation/admin/queue.ts";
import type { App } from "../app.ts";
import type { Ended } from "../pipeline/fail.ts";
import type { HeldKindRow, JobRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { HELD_BY_DEFAULT, heldKinds, restingKinds } from "../jobs/holds.ts";
import { JOB_KINDS, type JobKind } from "../jobs/kinds.ts";
import { voidLeases } from "../jobs/queue.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { shown } from "./shown.ts";
import { withApp } from "./with-app.ts";

const SHOWN = 100;
const MAX_SHOWN = 100_000;

export function queueCommand(): Command {
  return new Command("queue")
    .description("work that waits: see it, try it again, drop it, hold it")
    .addCommand(listCommand())
    .addCommand(retryCommand())
    .addCommand(dropCommand())
    .addCommand(holdCommand())
    .addCommand(releaseCommand());
}

function listCommand(): Command {
  return new Command("list")
    .description("what waits, what for, and when it is tried next; the oldest first")
    .addOption(new Option("--kind <kind>", "of this kind only").choices(JOB_KINDS))
    .addOption(new Option("--state <state>", "in this state only").choices(JOB_STATES))
    .addOption(new Option("--limit <n>", `as many at most (default: ${SHOWN})`).argParser(countOf))
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((options: CommonOptions & { kind?: JobKind; state?: JobState; limit?: number }) =>
      withQueue(options, async (app) => {
        const { kind, state, limit = SHOWN } = options;
        const { items, next_cursor } = await listQueue(app, { kind, state, limit });
        const held = (await heldKinds(app.db)).map((row) => row.kind);
        const lines = items.flatMap(linesOf);
        if (items.length === 0) lines.push("Nothing waits.");
        if (next_cursor !== null)
          lines.push(`… and more; --limit ${Math.min(limit * 10, MAX_SHOWN)} shows more.`);
        if (held.length > 0)
          lines.push(`Held: ${held.join(", ")}. \`mailwright queue release\` lets them go on.`);
        print(options, { jobs: items, more: next_cursor !== null, held }, lines);
      }),
    );
}

function linesOf(job: JobView): string[] {
  const next = job.next_at === null || job.state === "due" ? "" : ` Next try: ${timeOf(job.next_at)}.`;
  const account = job.account === null ? "" : ` (account ${shown(job.account)})`;
  return [
    `${job.id}  ${job.kind}  ${job.state}`,
    `  ${shown(job.about)}${account}, since ${timeOf(job.created)}`,
    `  ${shown(job.why)}.${next}`,
  ];
}

function retryCommand(): Command {
  return new Command("retry")
    .description("have a job tried at once, also one that was given up")
    .argument("[id]")
    .option("--all", "have all of them tried")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((id: string | undefined, options: CommonOptions & { all?: boolean }) => {
      if ((id === undefined) === (options.all !== true))
        throw new AppError("validation_error", "Say which one: an id of `mailwright queue list`, or --all.");
      return withQueue(options, async (app, alone) => {
        const ids = id === undefined ? await retryable(app) : [id];
        const refused: string[] = [];
        const kinds: string[] = [];
        for (const one of ids) {
          const job = await retryOne(app, one, id === undefined ? refused : null);
          if (job) kinds.push(job.kind);
        }
        const resting = await restingKinds(app);
        const held = kinds.filter((kind) => resting.has(kind as JobKind));
        print(options, { retried: kinds.length, refused, held: held.length }, [
          ...(held.length > 0 && held.length === kinds.length
            ? []
            : [triedLine(kinds.length - held.length, alone)]),
          ...heldLines(held, await heldKinds(app.db), resting),
          ...refused,
        ]);
      });
    });
}

function triedLine(count: number, alone: boolean): string {
  const when = alone ? "once a server runs" : "as soon as the server has a free slot";
  return `${count === 1 ? "1 job is" : `${count} jobs are`} tried ${when}.`;
}

/** Returns lines about held kinds; `resting` has the reasons for kinds that the operator does not hold. */
function heldLines(kinds: string[], held: HeldKindRow[], resting: Map<string, string>): string[] {
  return [...new Set(kinds)].map((kind) => {
    const count = kinds.filter((one) => one === kind).length;
    const jobs = `${count === 1 ? "1 job is" : `${count} jobs are`} held:`;
    return held.some((row) => row.kind === kind)
      ? `${jobs} \`mailwright queue release ${kind}\` lets ${count === 1 ? "it" : "them"} be tried.`
      : `${jobs} ${resting.get(kind)}.`;
  });
}

/**
 * Retries one job. When many are retried (`refused` is a list), one that cannot be is added to `refused`, and the rest
 * continues.
 */
async function retryOne(app: App, id: string, refused: string[] | null): Promise<JobRow | undefined> {
  try {
    return await retryJob(app, id);
  } catch (error) {
    if (refused === null || !(error instanceof AppError)) throw error;
    refused.push(`${id}: ${error.message}`);
    return undefined;
  }
}

/** Returns the ids of jobs that wait after a failure or were given up, but not those that wait for their own time. */
async function retryable(app: App): Promise<string[]> {
  const rows = await app.db
    .selectFrom("jobs")
    .select("id")
    .where((eb) =>
      eb.or([
        eb("status", "=", "dead"),
        eb.and([
          eb("status", "=", "pending"),
          eb("run_at", ">", app.now()),
          // Failures of deliveries are counted on each delivery.
          eb.or([eb("failures", ">", 0), eb("kind", "=", "deliver_webhooks")]),
        ]),
      ]),
    )
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}

function dropCommand(): Command {
  return new Command("drop")
    .description("take a job out of the queue for good; a message that it was for ends as failed")
    .argument("<id>")
    .option("--reason <text>", "why, for those who waited for it")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((id: string, options: CommonOptions & { reason?: string }) =>
      withQueue(options, async (app) => {
        const { job, ended } = await dropJob(app, id, options.reason ?? null);
        const { kind } = job;
        print(options, { id, kind, messages: ended }, [
          `The job (${kind}) is out of the queue.`,
          ...ended.map(endedLine),
        ]);
      }),
    );
}

/** Returns a line about the message that the job was for. */
function endedLine({ id, state, reason }: Ended): string {
  const why = reason === null ? "" : ` (${reason})`;
  return state === "failed"
    ? `Message ${id} has failed${why}; nothing is charged for it.`
    : `Message ${id} is ${state}${why}, as it was.`;
}

function holdCommand(): Command {
  return new Command("hold")
    .description(`begin nothing more of a kind until it is released (default: ${HELD_BY_DEFAULT.join(", ")})`)
    .addArgument(new Argument("[kind]").choices(JOB_KINDS))
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((kind: JobKind | undefined, options: CommonOptions) =>
      withQueue(options, async (app) => {
        const kinds = kind === undefined ? HELD_BY_DEFAULT : [kind];
        await hold(app, kinds);
        print(options, { held: (await heldKinds(app.db)).map((row) => row.kind) }, [
          `Held: ${kinds.join(", ")}. What runs already goes on to its end; mail is still taken in.`,
        ]);
      }),
    );
}

function releaseCommand(): Command {
  return new Command("release")
    .description("let what was held go on (default: all of it)")
    .addArgument(new Argument("[kind]").choices(JOB_KINDS))
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((kind: JobKind | undefined, options: CommonOptions) =>
      withQueue(options, async (app, alone) => {
        const before = (await heldKinds(app.db)).map((row) => row.kind as JobKind);
        const released = before.filter((one) => kind === undefined || one === kind);
        const due = await countDue(app, released);
        await release(app, kind === undefined ? JOB_KINDS : [kind]);
        const held = before.filter((one) => !released.includes(one));
        const resting = await restingKinds(app);
        const starting = due.reduce((sum, row) => sum + (resting.has(row.kind as JobKind) ? 0 : row.jobs), 0);
        const still = held.length === 0 ? [] : [`Still held: ${held.join(", ")}.`];
        const done = releasedLine(released.length, starting, alone);
        print(options, { released, starting, held }, [done, ...still]);
      }),
    );
}

function releasedLine(kinds: number, jobs: number, alone: boolean): string {
  if (kinds === 0) return "Nothing of it was held.";
  const start = jobs === 1 ? "1 job starts" : `${jobs === 0 ? "no" : jobs} jobs start`;
  return `Released ${kinds} ${kinds === 1 ? "kind" : "kinds"}, ${start}${alone && jobs > 0 ? " once a server runs" : ""}.`;
}

/** Returns how many jobs would start now; later ones wait for their time. */
function countDue(app: App, kinds: JobKind[]): Promise<{ kind: string; jobs: number }[]> {
  return app.db
    .selectFrom("jobs")
    .select(({ fn }) => ["kind", fn.countAll<number>().as("jobs")])
    .where("kind", "in", kinds)
    .where("status", "=", "pending")
    .where("run_at", "<=", app.now())
    .groupBy("kind")
    .execute();
}

/**
 * Runs a command of the queue. Without a server (`alone`) no job can be running, so leases left by a process that died
 * are freed.
 */
function withQueue(options: CommonOptions, work: (app: App, alone: boolean) => Promise<void>): Promise<void> {
  return withApp(options, async (app, alone) => {
    if (alone) await app.write(voidLeases);
    await work(app, alone);
  });
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= MAX_SHOWN) return count;
  throw new AppError("validation_error", `--limit is a whole number from 1 to ${MAX_SHOWN}.`);
}
