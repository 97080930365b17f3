import { type Completion, complete } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { releaseCredit } from "../billing/ledger.ts";
import { type OpenConnection, openConnectionOf } from "../connections/connections.ts";
import { recallTurns } from "../conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import { parseCommand } from "./command.ts";
import { readInput } from "./input.ts";
import { buildPrompt } from "./prompt.ts";
import { inboxById } from "../inboxes/inboxes.ts";
import type { SafeFetch } from "../lib/net.ts";

type Failure = Completion & { ok: false };

/** A provider that fails for the moment is asked this many times in all. */
const MAX_MODEL_ATTEMPTS = 2;
const RETRY_SECONDS = 2;
const MAX_RETRY_SECONDS = 300;

/**
 * Works on an accepted message: reads it, asks the model, and closes it in one transaction with its result, its
 * credit, its answer and its job. Redone from the start if the process dies on the way.
 */
export async function routeNow(app: App, job: Job<"route_message">, signal: AbortSignal): Promise<void> {
  const found = await loadMessage(app, job.payload.message_id);
  if (!found) return endWithoutInbox(app, job);
  const input = await readInput(app, found.message);
  const run: Run = {
    ...found,
    job,
    signal,
    input,
    command: parseCommand(input.instruction),
    warnings: [...input.warnings],
  };
  const connection = await findConnection(app, run);
  if ("state" in connection) return closeRun(app, run, connection);
  const cap = AbortSignal.timeout(app.config.routing.hard_cap_seconds * 1_000);
  const answer = await askModel(app, run, connection, AbortSignal.any([signal, cap]));
  if (signal.aborted && !answer.ok) throw signal.reason;
  if (!answer.ok && mayRetry(job, answer) && !cap.aborted) return retryLater(app, job, answer);
  await closeRun(app, run, endingOf(answer));
}

/** Ends a message whose job cannot be finished, in the transaction that buries the job. */
export function giveUpRouting(app: App, tx: Db, job: Job<"route_message">): Promise<void> {
  return failMessage(app, tx, job, { reason: "internal", error: BROKEN });
}

const BROKEN =
  "The run could not be finished because of a fault of this server; its log says more. Send the mail again later.";
const NO_CONNECTION = "Inbox has no LLM connection";
const NO_CONNECTION_FIX =
  "Make one with POST /connections, set it as default_connection_id of the inbox, then send the mail again.";

/** The model connection of an inbox, or how a run ends without one. */
async function findConnection(app: App, { inbox, message }: Run): Promise<OpenConnection | Ending> {
  try {
    const connection = await openConnectionOf(app, inbox);
    // Who tests an inbox has the page to mend it at hand.
    const error = message.source === "test" ? NO_CONNECTION : `${NO_CONNECTION}. ${NO_CONNECTION_FIX}`;
    return connection ?? { state: "failed", reason: "no_provider", error };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return {
      state: "failed",
      reason: "connection_unreadable",
      error: `${error.message} ${error.extras.fix ?? ""}`,
    };
  }
}

async function loadMessage(
  app: App,
  message_id: string,
): Promise<{ message: MessageRow; inbox: InboxRow } | undefined> {
  const [message] = await messageById(app.db, { id: message_id });
  if (message?.state !== "received" || message.inbox_id === null) return undefined;
  const [inbox] = await inboxById(app.db, { id: message.inbox_id });
  return inbox && { message, inbox };
}

const messageById = prepared((db, key: { id: string }) =>
  db.selectFrom("messages").selectAll().where("id", "=", key.id),
);

/** The inbox was deleted while the message waited; or the message has ended already. */
async function endWithoutInbox(app: App, job: Job<"route_message">): Promise<void> {
  await app.write(async (tx) => {
    await finishJob(tx, job);
    await failMessage(app, tx, job, {
      reason: "inbox_deleted",
      error: "The inbox was deleted before the message was worked on.",
    });
  });
}

async function failMessage(
  app: App,
  tx: Db,
  job: Job<"route_message">,
  failure: { reason: string; error: string },
): Promise<void> {
  const [message] = await messageById(tx, { id: job.payload.message_id });
  if (message?.state !== "received") return;
  await releaseCredit(app, tx, message);
  const ended = { state: "failed" as const, ...failure, completed: app.now() };
  await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
  setImmediate(() => app.finished.notify(message.id));
}

async function askModel(
  app: App,
  run: Run,
  connection: OpenConnection,
  signal: AbortSignal,
): Promise<Completion> {
  const turns = await recallTurns(app.db, run.message);
  const files = run.input.files.map((file) => file.filename);
  const { command, content } = { command: run.command.command, content: run.input.content };
  const prompt = buildPrompt({ instruction: command, content, turns, files });
  run.warnings.push(...prompt.warnings);
  const { trusted, ...model } = connection;
  return complete({
    connection: model,
    messages: prompt.messages,
    signal,
    fetch: trusted ? operatorFetch : app.fetch,
    brief: { instruction: command, content, attachments: files, contexts: [] },
  });
}

/** To wherever the operator's own connection points; the signal is the only clock, as in `app.fetch`. */
const operatorFetch: SafeFetch = (url, init) => fetch(url, { ...init, timeout: false });

function endingOf(answer: Completion): Ending {
  if (!answer.ok) return { state: "failed", reason: answer.code, error: answer.message };
  return { state: "done", result: answer.text, model: answer.model, usage: answer.usage };
}

/** A provider that wants to be left alone for longer than a person waits for an answer has failed. */
function mayRetry(job: Job, answer: Failure): boolean {
  const seconds = answer.retry_after_seconds ?? RETRY_SECONDS;
  return answer.retryable && seconds <= MAX_RETRY_SECONDS && job.failures + 1 < MAX_MODEL_ATTEMPTS;
}

async function retryLater(app: App, job: Job, answer: Failure): Promise<void> {
  const seconds = answer.retry_after_seconds ?? RETRY_SECONDS;
  app.log.info({ job_id: job.id, code: answer.code, seconds }, "the model will be asked again");
  await app.write((tx) => postponeJob(tx, job, { run_at: app.now() + seconds, error: answer.message }));
  app.worker?.wake(job.kind);
}
