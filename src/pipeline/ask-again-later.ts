import type { Completion } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { afterCommit } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { type Job, postponeJob, returnJob } from "../jobs/queue.ts";
import { untilNextTry } from "../jobs/tries.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import type { Run } from "./close.ts";
import { type Again, secondsUntil } from "./model-pause.ts";
import { toSteps, warningStep } from "./steps.ts";

type Failure = Completion & { ok: false };

/** Puts a run back until its model is asked again, and says so on its message. */
export async function retryLater(
  app: App,
  job: Job,
  { message, connection, owner_timezone }: Run,
  { failure, seconds }: Again,
): Promise<void> {
  app.log.info({ code: failure.code, seconds }, "the model will be asked again");
  const run_at = app.after(seconds);
  const moment = writtenMoment(run_at, owner_timezone);
  const told = `${asSentence(failure.message)} It is asked again at ${moment}.`;
  const dedupe_key = keyFor(message, connection?.id ?? null);
  await app.write(async (tx) => {
    await postponeJob(tx, job, { run_at, error: failure.message, dedupe_key });
    await noteSteps(tx, { id: message.id, steps: JSON.stringify(toSteps([warningStep(told)])) });
    afterCommit(tx, () => app.changes.tell(message.user_id, message.id));
  });
  app.worker?.wake(job.kind);
}

/** Puts a message back whose question was not answered: that leaves the run itself as many tries as it has. */
export async function askAgainLater(
  app: App,
  job: Job,
  { message, inbox }: Pick<Run, "message" | "inbox">,
  answer: Failure,
): Promise<void> {
  const seconds = secondsUntil(answer);
  app.log.info({ code: answer.code, seconds }, "a question of a rule will be asked again");
  const dedupe_key = keyFor(message, inbox.default_connection_id);
  await app.write((tx) =>
    returnJob(tx, job, { run_at: app.after(seconds), error: answer.message, dedupe_key }),
  );
  app.worker?.wake(job.kind);
}

function keyFor({ id: message_id, user_id }: Run["message"], connection_id: string | null): string {
  return untilNextTry({ user_id, message_id, connection_id: connection_id ?? "" });
}

/** Words of a provider may end without a full stop. */
function asSentence(words: string): string {
  return /[.!?…]["'”’)]*$/.test(words) ? words : `${words}.`;
}

const noteSteps = prepared((db, row: { id: string; steps: string }) =>
  db.updateTable("messages").set({ steps: row.steps }).where("id", "=", row.id),
);
