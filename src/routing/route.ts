import { type Completion, complete } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { releaseCredit, RUN_CREDITS, settleCredit } from "../billing/ledger.ts";
import { type OpenConnection, openConnectionOf } from "../connections/connections.ts";
import { noteTurn, recallTurns } from "../conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { storeFiles } from "../messages/accept.ts";
import { type Command, parseCommand } from "./command.ts";
import { type RunInput, readInput } from "./input.ts";
import { buildPrompt } from "./prompt.ts";
import type { SafeFetch } from "../lib/net.ts";
import { mayAnswer, type PreparedReply, prepareReply } from "./reply.ts";

/** A provider that fails for the moment is asked this many times in all. */
const MAX_MODEL_ATTEMPTS = 2;
const RETRY_SECONDS = 2;
const MAX_RETRY_SECONDS = 300;

export interface Step {
  index: number;
  type: "tool_call" | "context" | "extract" | "warning";
  status: "ok" | "error" | "blocked";
  output: string;
}

/** How a run ended, before it is written down. */
type Ending =
  | {
      state: "done";
      result: string;
      model: string;
      usage: { input_tokens: number; output_tokens: number } | null;
    }
  | { state: "failed"; reason: string; error: string };

interface Run {
  message: MessageRow;
  inbox: InboxRow;
  input: RunInput;
  command: Command;
  warnings: string[];
}

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
    input,
    command: parseCommand(input.instruction),
    warnings: [...input.warnings],
  };
  const connection = await openConnectionOf(app, run.inbox);
  if (!connection) return close(app, job, run, NO_CONNECTION);
  const cap = AbortSignal.timeout(app.config.routing.hard_cap_seconds * 1_000);
  const answer = await askModel(app, run, connection, AbortSignal.any([signal, cap]));
  if (signal.aborted && !answer.ok) throw signal.reason;
  if (!answer.ok && answer.retryable && !cap.aborted && job.failures + 1 < MAX_MODEL_ATTEMPTS)
    return retryLater(app, job, answer);
  await close(app, job, run, endingOf(answer));
}

/** Ends a message whose job cannot be finished, in the transaction that buries the job. */
export function giveUpRouting(app: App, tx: Db, job: Job<"route_message">): Promise<void> {
  return failMessage(app, tx, job, { reason: "internal", error: BROKEN });
}

const BROKEN =
  "The run could not be finished because of a fault of this server; its log says more. Send the mail again later.";
const NO_CONNECTION: Ending = {
  state: "failed",
  reason: "no_provider",
  error:
    "This inbox has no model connection. Add one under Connections and choose it for the inbox, then send the mail again.",
};

async function loadMessage(
  app: App,
  message_id: string,
): Promise<{ message: MessageRow; inbox: InboxRow } | undefined> {
  const message = await app.db
    .selectFrom("messages")
    .selectAll()
    .where("id", "=", message_id)
    .executeTakeFirst();
  if (message?.state !== "received" || message.inbox_id === null) return undefined;
  const inbox = await app.db
    .selectFrom("inboxes")
    .selectAll()
    .where("id", "=", message.inbox_id)
    .executeTakeFirst();
  return inbox && { message, inbox };
}

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
  const message = await tx
    .selectFrom("messages")
    .selectAll()
    .where("id", "=", job.payload.message_id)
    .executeTakeFirst();
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

async function retryLater(app: App, job: Job, answer: Completion & { ok: false }): Promise<void> {
  const seconds = Math.min(answer.retry_after_seconds ?? RETRY_SECONDS, MAX_RETRY_SECONDS);
  app.log.info({ job_id: job.id, code: answer.code, seconds }, "the model will be asked again");
  await app.write((tx) => postponeJob(tx, job, { run_at: app.now() + seconds, error: answer.message }));
  app.worker?.wake(job.kind);
}

async function close(app: App, job: Job, run: Run, ending: Ending): Promise<void> {
  const { message } = run;
  const reply = await answerTo(app, run, ending);
  await app.write(async (tx) => {
    await finishJob(tx, job);
    await tx
      .updateTable("messages")
      .set(closingColumns(app, run, ending))
      .where("id", "=", message.id)
      .execute();
    if (ending.state === "done") await settleCredit(app, tx, message);
    else await releaseCredit(app, tx, message);
    if (message.source === "email")
      await storeFiles(app, tx, { message_id: message.id, direction: "in", files: run.input.files });
    if (ending.state === "done") {
      const { conversation_id, sender } = message;
      await noteTurn(tx, { conversation_id, sender, reply: ending.result, now: app.now() });
    }
    if (!reply) return;
    const reply_status = await reply.queue(tx);
    await tx.updateTable("messages").set({ reply_status }).where("id", "=", message.id).execute();
  });
  app.finished.notify(message.id);
  app.log.info({ message_id: message.id, state: ending.state }, "message routed");
}

/** The answer to mail back: the result, or a notice of the failure for a person who could act on it. */
async function answerTo(app: App, run: Run, ending: Ending): Promise<PreparedReply | undefined> {
  const { message, inbox, input } = run;
  if (!mayAnswer(message, inbox) || !input.headers) return undefined;
  const answered = { message, inbox, headers: input.headers };
  if (ending.state === "done") {
    const markdown = [ending.result, ...run.warnings.map((warning) => `*${warning}*`)].join("\n\n");
    return prepareReply(app, answered, { kind: "reply", markdown });
  }
  if (message.authority !== "owner" && message.authority !== "listed") return undefined;
  const markdown = `Your mail could not be worked on.\n\n${ending.error}\n\nNothing was charged.`;
  return prepareReply(app, answered, { kind: "notice", markdown });
}

function closingColumns(app: App, run: Run, ending: Ending): Partial<MessageRow> {
  const columns = {
    state: ending.state,
    instruction: run.command.raw,
    command: JSON.stringify(run.command),
    steps: JSON.stringify(run.warnings.map(toStep)),
    completed: app.now(),
    duration_ms: app.nowMs() - run.message.accepted_ms,
  };
  if (ending.state === "failed") return { ...columns, error: ending.error, reason: ending.reason };
  return {
    ...columns,
    ...ending.usage,
    result: ending.result,
    model: ending.model,
    credits_charged: run.message.source === "test" ? 0 : RUN_CREDITS,
  };
}

function toStep(output: string, index: number): Step {
  return { index, type: "warning", status: "ok", output };
}
