import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { insertRow, prepared } from "../../db/prepared.ts";
import type { TestRunRow, UserRow } from "../../db/schema.ts";
import { AppError, fullText } from "../../errors.ts";
import type { Caller } from "../accounts/sessions.ts";
import { refuseUnverified } from "../accounts/verified.ts";
import { remainingCredits, RUN_CREDITS } from "../billing/ledger.ts";
import { historySince } from "../billing/plans.ts";
import { refuseFull } from "../billing/storage.ts";
import { addReplay, blankReplay, readyToRun, refuseForeign, removeReplay } from "../replays/replays.ts";
import { starredOf } from "./stars.ts";
import { ownTestRun, readTestRun, type TestAsked, type TestRunView } from "./view.ts";

/** Messages of one run. */
const MAX_MESSAGES = 50;
/** Runs that are kept of an account. */
export const MAX_TEST_RUNS = 20;

/**
 * Runs the test set: one replay of each starred message, all in one transaction. What cannot be run again any more is in the table with
 * its reason. Throws `conflict` without messages, with too many, or beside another run, and `plan_limit_reached` without the
 * credits for all.
 */
export async function createTestRun(
  app: App,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  { asked, admit }: { asked: TestAsked; admit: () => void },
): Promise<TestRunView> {
  refuseUnverified(user);
  const { tag, ...otherwise } = asked;
  const id = await app.write(async (tx) => {
    app.refuseIntake();
    await refuseMore(tx, user);
    await refuseForeign(tx, user, otherwise);
    const messages = await chosen(app, tx, user, tag);
    await refuseWithoutCredits(app, tx, user, messages.length);
    admit();
    const run = { id: app.newId(), user_id: user.id, asked: JSON.stringify(asked), created: app.now() };
    await refuseFull(app, tx, user, Buffer.byteLength(run.asked));
    await insertRow(tx, "test_runs", run);
    for (const { message_id, expected } of messages) {
      const message = { id: message_id, user_id: user.id };
      const of = { test_run_id: run.id, expected };
      const created = blankReplay(app, { message, asked: otherwise, key_id, of });
      const ready = await orWhy(() => readyToRun(app, tx, user, message_id));
      if (typeof ready === "string") await insertRow(tx, "replays", { ...created, ...failed(app, ready) });
      else await addReplay(app, tx, user, { created, bytes: ready.bytes });
    }
    return run.id;
  });
  return readTestRun(app, user, id);
}

/** Deletes a run of the test set; what of it is still to come or under way comes to nothing, and costs nothing. */
export async function deleteTestRun(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    await ownTestRun(tx, user, id);
    for (const row of await replaysOf(tx, { test_run_id: id })) await removeReplay(app, tx, row);
    await tx.deleteFrom("test_runs").where("id", "=", id).execute();
  });
}

const replaysOf = prepared((db, key: { test_run_id: string }) =>
  db
    .selectFrom("replays")
    .select(["id", "user_id", "message_id", "state"])
    .where("test_run_id", "=", key.test_run_id),
);

/** The messages that a run is about. */
async function chosen(app: App, db: Db, user: UserRow, tag: string | undefined) {
  const messages = await starredOf(db, user, { since: historySince(app, user), tag });
  const which = tag === undefined ? "The test set" : "The part of the test set with this tag";
  if (messages.length === 0)
    throw new AppError("conflict", `${which} has no messages.`, {
      fix: 'Star some messages on their pages, each with what its answer should be (`PATCH /messages/{message_id}` with `{"expected": {"contains": "…"}}`).',
    });
  if (messages.length > MAX_MESSAGES)
    throw new AppError(
      "conflict",
      `${which} has ${messages.length} messages, and a run at most ${MAX_MESSAGES}.`,
      {
        fix: "Run a part of it: give those messages a tag, and choose it (`PATCH /messages/{message_id}`, then `tag`).",
      },
    );
  return messages;
}

/** What stands in the way of one message is no reason not to run the others. */
async function orWhy<T>(look: () => Promise<T>): Promise<T | string> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof AppError) return fullText(error);
    throw error;
  }
}

function failed(app: App, error: string) {
  const reason = "replay_refused" as const;
  return { state: "failed" as const, reason, error, completed: app.now(), duration_ms: 0 };
}

async function refuseMore(tx: Db, { id }: UserRow): Promise<void> {
  const [under_way] = await underWay(tx, { user_id: id });
  if (under_way)
    throw new AppError("conflict", "The test set is being run already.", {
      fix: `Wait until that is done, or delete it (\`DELETE /v1/test-runs/${under_way.test_run_id}\`).`,
    });
  const [counted] = await countOf(tx, { user_id: id });
  if ((counted?.count ?? 0) < MAX_TEST_RUNS) return;
  throw new AppError("conflict", `${MAX_TEST_RUNS} runs of the test set are kept already.`, {
    fix: "Delete one of them (`DELETE /v1/test-runs/{test_run_id}`).",
  });
}

const underWay = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("test_runs")
    .innerJoin("replays", "replays.test_run_id", "test_runs.id")
    .select("replays.test_run_id")
    .where("test_runs.user_id", "=", key.user_id)
    .where("replays.state", "=", "received")
    .limit(1),
);

const countOf = prepared((db, key: Pick<TestRunRow, "user_id">) =>
  db
    .selectFrom("test_runs")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", key.user_id),
);

async function refuseWithoutCredits(app: App, tx: Db, user: UserRow, messages: number): Promise<void> {
  const left = await remainingCredits(app, tx, user);
  if (left >= messages * RUN_CREDITS) return;
  throw new AppError(
    "plan_limit_reached",
    `The account has ${left} credits left, and a run of ${messages} messages may cost ${messages * RUN_CREDITS}.`,
    {
      fix: "Run a part of the test set, by a tag, or run it when there are more: with the next month, or when you are given more (`mailwright user set-plan`).",
    },
  );
}
