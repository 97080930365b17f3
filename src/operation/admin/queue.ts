import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { JobRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { holdKinds, releaseKinds, restingKinds } from "../../jobs/holds.ts";
import type { JobKind } from "../../jobs/kinds.ts";
import { waitsForCredit } from "../../jobs/credit-waits.ts";
import { PAUSED_AT } from "../../jobs/paused.ts";
import { decodeCursor, type Page, pageOf } from "../../lib/pagination.ts";
import { payloadOf } from "../../jobs/queue.ts";
import { aboutJob, dropOf } from "../jobs.ts";

/**
 * States of a job as the operator sees them. `due` waits for its turn, `waiting` for its time, `held` for a release or,
 * for mail, for `outbound.mode` to change.
 */
export const JOB_STATES = ["due", "waiting", "held", "running", "dead"] as const;
export type JobState = (typeof JOB_STATES)[number];

/** A job as the operator sees it, never with text of a mail. */
export interface JobView {
  id: string;
  kind: string;
  state: JobState;
  /** What it is for, as a phrase. */
  about: string;
  /** Mail address of the account, if it belongs to one. */
  account: string | null;
  /** Why it is not done yet. */
  why: string;
  attempts: number;
  failures: number;
  last_error: string | null;
  created: number;
  /** When it is tried next; null when that is up to the operator. */
  next_at: number | null;
  /** Whether it may be dropped; what would stay half done without it may not. */
  may_drop: boolean;
}

interface Wanted {
  kind?: string | undefined;
  state?: JobState | undefined;
  limit: number;
  cursor?: string | undefined;
}

/** Returns a page of jobs, the oldest first. */
export async function listQueue(app: App, wanted: Wanted): Promise<Page<JobView>> {
  const resting = await restingKinds(app);
  const rows = await jobsLike(app, wanted, [...resting.keys()]);
  const views = new Map<string, JobView>();
  for (const row of rows) views.set(row.id, await viewJob(app, row, resting.get(row.kind as JobKind)));
  return pageOf(rows, wanted.limit, {
    view: ({ id }) => views.get(id) as JobView,
    key: ({ id }) => [id],
  });
}

export async function readJob(db: Db, id: string): Promise<JobRow> {
  const row = await db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirst();
  if (row) return row;
  throw new AppError("not_found", "There is no such job in the queue.", {
    fix: "It may be done by now; `mailwright queue list` shows what is there.",
  });
}

export async function hold(app: App, kinds: JobKind[]): Promise<void> {
  await app.write((tx) => holdKinds(tx, kinds, app.now()));
  app.log.info({ kinds }, "held: none of these is begun until it is released");
}

export async function release(app: App, kinds: JobKind[]): Promise<void> {
  await app.write((tx) => releaseKinds(tx, kinds));
  app.worker?.wakeAll();
  app.log.info({ kinds }, "released");
}

function jobsLike(app: App, { kind, state, limit, cursor }: Wanted, held: string[]): Promise<JobRow[]> {
  const status = state === "dead" || state === "running" ? state : "pending";
  return app.db
    .selectFrom("jobs")
    .selectAll()
    .$if(kind !== undefined, (query) => query.where("kind", "=", kind ?? ""))
    .$if(state !== undefined, (query) => query.where("status", "=", status))
    .$if(state === "held", (query) => query.where("kind", "in", held))
    .$if(state === "due" || state === "waiting", (query) => query.where("kind", "not in", held))
    .$if(state === "due", (query) => query.where("run_at", "<=", app.now()))
    .$if(state === "waiting", (query) => query.where("run_at", ">", app.now()))
    .$if(cursor !== undefined, (query) => query.where("id", ">", decodeCursor(cursor ?? "", ["id"])[0]))
    .orderBy("id")
    .limit(limit + 1)
    .execute();
}

async function viewJob(app: App, row: JobRow, held: string | undefined): Promise<JobView> {
  const state = stateOf(app, row, held);
  const { about, account, failed } = await aboutJob(app.db, row);
  const { id, kind, attempts, failures, last_error, created } = row;
  return {
    id,
    kind,
    state,
    about,
    account,
    why: whyOf(row, state, { held, failed }),
    attempts,
    failures,
    last_error,
    created,
    next_at: (state === "due" || state === "waiting") && row.run_at < PAUSED_AT ? row.run_at : null,
    may_drop: dropOf(row, payloadOf(row)) !== undefined,
  };
}

function stateOf(app: App, row: JobRow, held: string | undefined): JobState {
  if (row.status !== "pending") return row.status;
  if (held) return "held";
  return row.run_at <= app.now() ? "due" : "waiting";
}

function whyOf(
  row: JobRow,
  state: JobState,
  { held, failed: part }: { held: string | undefined; failed: string | undefined },
): string {
  const failed = row.last_error === null ? (part ?? "") : `failed${timesOf(row.failures)}: ${row.last_error}`;
  if (state === "dead") return `given up: ${row.last_error ?? ""}`;
  if (state === "running") return "being worked on";
  if (held) return held;
  if (row.run_at === PAUSED_AT) return "its inbox is paused";
  if (waitsForCredit(row)) return "the credits that are left are held for other messages";
  if (failed) return failed;
  if (state === "waiting") return "its time has not come";
  return row.behind === 0 ? "its turn is next" : "an earlier message of its conversation comes first";
}

/**
 * Returns " once", " 3 times" and the like; empty for a job without counted failures, such as one that the operator has
 * retried.
 */
function timesOf(failures: number): string {
  if (failures === 0) return "";
  return failures === 1 ? " once" : ` ${failures} times`;
}
