import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { ReplayRow, TestRunRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { asAmount } from "../../lib/money.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { usageOf } from "../messages/view.ts";
import { type Asked, viewAsked } from "../replays/view.ts";
import { expectedOf } from "./stars.ts";
import { HEAD_CHARS, shortText } from "./short-text.ts";

/** What a run of the test set does otherwise, and with which messages. */
export interface TestAsked extends Asked {
  tag?: string;
}

/** The runs of the test set of an account, newest first, without their tables. */
export async function listTestRuns(app: App, user: UserRow) {
  const runs = await app.db
    .selectFrom("test_runs")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id", "desc")
    .execute();
  const sums = await sumsOf(
    app.db,
    runs.map(({ id }) => id),
  );
  return runs.map((run) => viewRun(run, sums.get(run.id) ?? []));
}

/** One run with its table. */
export async function readTestRun(app: App, user: UserRow, id: string) {
  const run = await ownTestRun(app.db, user, id);
  const sums = await sumsOf(app.db, [id]);
  const rows = await rowsOf(app.db, { test_run_id: id });
  return { ...viewRun(run, sums.get(id) ?? []), items: rows.map(viewItem) };
}

export type TestRunView = Awaited<ReturnType<typeof readTestRun>>;

/** The user's own run, or `not_found`, whether it is unknown or somebody else's. */
export async function ownTestRun(db: Db, user: Pick<UserRow, "id">, id: string): Promise<TestRunRow> {
  const [row] = await runById(db, { id, user_id: user.id });
  if (row) return row;
  throw new AppError("not_found", "There is no such run of the test set.", {
    fix: "The page “Test set” lists those that there are (`GET /v1/test-runs`).",
  });
}

const runById = prepared((db, key: Pick<TestRunRow, "id" | "user_id">) =>
  db.selectFrom("test_runs").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

/** Texts are read no further than they are shown. */
const rowsOf = prepared((db, key: { test_run_id: string }) =>
  db
    .selectFrom("replays")
    .innerJoin("messages", "messages.id", "replays.message_id")
    .select(["replays.id", "replays.message_id", "replays.state", "replays.error", "replays.model"])
    .select(["replays.input_tokens", "replays.output_tokens", "replays.cost", "replays.duration_ms"])
    .select(["replays.expected", "replays.passed", "replays.differs", "messages.subject"])
    .select((eb) => [
      eb.fn<string>("substr", ["replays.result", eb.lit(1), eb.lit(HEAD_CHARS + 1)]).as("answer"),
      eb.fn<string>("substr", ["messages.result", eb.lit(1), eb.lit(HEAD_CHARS + 1)]).as("before"),
      eb.fn<string | null>("substr", ["messages.instruction", eb.lit(1), eb.lit(HEAD_CHARS + 1)]).as("asked"),
    ])
    .where("replays.test_run_id", "=", key.test_run_id)
    .where("messages.deleted_at", "is", null)
    .orderBy("replays.id"),
);

type Row = Awaited<ReturnType<typeof rowsOf>>[number];

function viewItem(row: Row) {
  return {
    replay_id: row.id,
    message_id: row.message_id,
    subject: row.subject,
    instruction: shortText(row.asked ?? ""),
    expected: expectedOf(row.expected),
    answer_before: shortText(row.before),
    answer: row.state === "done" ? shortText(row.answer) : null,
    status: statusOf(row),
    why: row.error ?? (row.state === "done" && row.passed === null ? UNREADABLE : row.differs),
    model: row.model,
    usage: usageOf(row),
    cost: asAmount(row.cost),
    duration_ms: row.duration_ms,
  };
}

/** What became of one message of a run. */
function statusOf({ state, passed }: Pick<ReplayRow, "state" | "passed">): Status {
  if (state === "received") return "processing";
  if (state === "failed" || passed === null) return "error";
  return passed === 1 ? "passed" : "failed";
}

/** Only a damaged disk leaves an answer without a verdict. */
const UNREADABLE = "What was expected cannot be read any more.";

type Status = "processing" | "passed" | "failed" | "error";

/** Figures of those messages of each run that became the same. */
async function sumsOf(db: Db, ids: string[]) {
  if (ids.length === 0) return new Map<string, Sums[]>();
  const rows = await db
    .selectFrom("replays")
    .innerJoin("messages", "messages.id", "replays.message_id")
    .select(["replays.test_run_id", "replays.state", "replays.passed"])
    .select((eb) => [
      eb.fn.countAll<number>().as("count"),
      eb.fn.sum<number | null>("replays.input_tokens").as("input_tokens"),
      eb.fn.sum<number | null>("replays.output_tokens").as("output_tokens"),
      eb.fn.sum<number | null>("replays.cost").as("cost"),
      eb.fn.sum<number | null>("replays.duration_ms").as("duration_ms"),
      eb.fn.max<number | null>("replays.completed").as("completed"),
    ])
    .where("replays.test_run_id", "in", ids)
    .where("messages.deleted_at", "is", null)
    .groupBy(["replays.test_run_id", "replays.state", "replays.passed"])
    .execute();
  return Map.groupBy(rows, ({ test_run_id }) => test_run_id ?? "");
}

interface Sums extends Pick<ReplayRow, "state" | "passed"> {
  count: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost: number | null;
  duration_ms: number | null;
  completed: number | null;
}

function viewRun(run: TestRunRow, sums: Sums[]) {
  const { tag, ...otherwise } = storedJson<TestAsked>(run.asked, {});
  const countOf = (status: Status): number =>
    sums.filter((one) => statusOf(one) === status).reduce((sum, { count }) => sum + count, 0);
  const sumOf = (name: "input_tokens" | "output_tokens" | "duration_ms"): number =>
    sums.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  const costs = sums.map(({ cost }) => cost).filter((cost) => cost !== null);
  const processing = countOf("processing");
  const ended = sums.map(({ completed }) => completed ?? 0);
  return {
    id: run.id,
    status: processing > 0 ? ("processing" as const) : ("done" as const),
    asked: { ...viewAsked(otherwise), tag: tag ?? null },
    messages: sums.reduce((sum, { count }) => sum + count, 0),
    processing,
    passed: countOf("passed"),
    failed: countOf("failed"),
    errors: countOf("error"),
    usage: { input_tokens: sumOf("input_tokens"), output_tokens: sumOf("output_tokens") },
    cost: asAmount(costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0)),
    duration_ms: sumOf("duration_ms"),
    created: run.created,
    completed: processing > 0 || ended.length === 0 ? null : Math.max(...ended),
  };
}
