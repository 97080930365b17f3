import type { Completion } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { releaseCredit } from "../billing/ledger.ts";
import type { OpenConnection } from "../connections/connections.ts";
import { hasEarlierMessages, startConversation } from "../conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { prepared, remembered } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { AppError, wordsOf } from "../errors.ts";
import { enqueue, finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { deadline } from "../lib/deadline.ts";
import { findConnection } from "./choose-connection.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import { readInput } from "./input.ts";
import { type StepDraft, toSteps, warning } from "./steps.ts";
import { forgetCalls, notedCalls, stepsOfEarlier } from "./tool-journal.ts";
import { understand, type Understanding } from "./understand.ts";
import { work } from "./work.ts";
import { recordState } from "../messages/events.ts";
import { isLost } from "../messages/stored-bytes.ts";

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
  try {
    await route(app, job, signal);
  } finally {
    app.progress.delete(job.payload.message_id);
  }
}

async function route(app: App, job: Job<"route_message">, signal: AbortSignal): Promise<void> {
  const found = await loadMessage(app, job.payload.message_id);
  if (!found) return endWithoutInbox(app, job);
  const input = await readInput(app, found.message, signal).catch(lostOrThrow);
  if (input instanceof AppError) return endWithoutContent(app, job, input);
  const asked = await understand(app, found, input);
  const { command, settings } = asked;
  const steps: StepDraft[] = [...input.extracted, ...input.warnings.map(warning), ...asked.steps];
  const trust = { tainted: true, trusted_text: "", material: "" };
  const outset = { made: [], trust, lacking: new Map(), changed: false, journal: journalOf(job, asked) };
  const run: Run = { ...found, job, signal, input, command, settings, steps, ...outset };
  app.progress.set(run.message.id, () => toSteps(run.steps));
  if (asked.refusal) return closeRun(app, run, { state: "failed", ...asked.refusal });
  const connection = await findConnection(app, run);
  if ("state" in connection) return closeRun(app, run, connection);
  if (settings.dry_run) return closeRun(app, run, planOf(asked, connection));
  if (settings.fresh) run.message = await beginAnew(app, found);
  using cap = deadline(signal, app.config.routing.hard_cap_seconds * 1_000);
  const answer = await work(app, run, { asked, connection, signal: cap.signal });
  if (signal.aborted && !answer.ok) throw signal.reason;
  if (!answer.ok && mayRetry(job, answer) && !cap.signal.aborted) return retryLater(app, job, answer);
  await closeRun(app, run, endingOf(answer));
}

/** Only a run with tools, or one that was begun before, has anything in it. */
function journalOf({ attempts, failures }: Job, { targets }: Understanding): Run["journal"] {
  return { open: targets.length > 0 || attempts > 1 || failures > 0, asked: new Set() };
}

/** Ends a message whose job cannot be finished, in the transaction that buries the job. */
export function giveUpRouting(app: App, tx: Db, job: Job<"route_message">): Promise<void> {
  return failMessage(app, tx, job, { reason: "internal", error: BROKEN });
}

/** The operator takes a message out of the queue, for this reason. */
export function dropRouting(
  app: App,
  tx: Db,
  job: Pick<Job<"route_message">, "payload">,
  error: string,
): Promise<void> {
  return failMessage(app, tx, job, { reason: "dropped", error });
}

const BROKEN =
  "The run could not be finished because of a fault of this server; its log says more. Send the mail again later.";
async function loadMessage(
  app: App,
  message_id: string,
): Promise<Pick<Run, "message" | "inbox" | "owner_email" | "owner_plan"> | undefined> {
  const [message] = await messageById(app.db, { id: message_id });
  if (message?.state !== "received" || message.inbox_id === null) return undefined;
  const [found] = await inboxAndOwner(app.db, { id: message.inbox_id });
  if (!found) return undefined;
  const { owner_email, owner_plan, ...inbox } = found;
  return { message, inbox, owner_email, owner_plan };
}

const inboxAndOwner = remembered((db, key: { id: string }) =>
  db
    .selectFrom("inboxes")
    .innerJoin("users", "users.id", "inboxes.user_id")
    .selectAll("inboxes")
    .select(["users.email as owner_email", "users.plan as owner_plan"])
    .where("inboxes.id", "=", key.id)
    .where("inboxes.deleted_at", "is", null)
    .where("users.deleted_at", "is", null),
);

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

function lostOrThrow(error: unknown): AppError {
  if (isLost(error)) return error;
  throw error;
}

/** What was accepted is missing on the disk: to try again helps nobody, and to answer without it would hide it. */
async function endWithoutContent(app: App, job: Job<"route_message">, lost: AppError): Promise<void> {
  await app.write(async (tx) => {
    await finishJob(tx, job);
    await failMessage(app, tx, job, { reason: lost.code, error: wordsOf(lost) });
  });
}

async function failMessage(
  app: App,
  tx: Db,
  job: Pick<Job<"route_message">, "payload">,
  failure: { reason: string; error: string },
): Promise<void> {
  const [message] = await messageById(tx, { id: job.payload.message_id });
  if (message?.state !== "received") return;
  await releaseCredit(app, tx, message);
  const noted = await notedCalls(tx, { message_id: message.id });
  const steps = JSON.stringify(toSteps(stepsOfEarlier(noted, new Set())));
  await forgetCalls(tx, message.id);
  const ended = { state: "failed" as const, ...failure, steps, completed: app.now() };
  await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
  await recordState(app, tx, { ...message, ...ended });
  if (message.source === "email")
    await enqueue(app, tx, { kind: "tell_failure", payload: { message_id: message.id } });
  setImmediate(() => app.finished.notify(message.id));
}

/** What a run would have done (`--dry-run`). */
function planOf(
  { instruction, contexts, command, targets }: Understanding,
  { model }: OpenConnection,
): Ending {
  const lines = [
    "Nothing was done and nothing was charged: this says what would have been.",
    `- Instruction: ${instruction || "(none)"}`,
    `- Model: ${model}`,
    `- Tools of: ${targets.map(({ name }) => `@${name}`).join(", ") || "none"}`,
    `- Contexts: ${contexts.map(({ slug }) => slug).join(", ") || "none"}`,
    `- Options: ${Object.entries(command.options)
      .map(([name, value]) => `${name} = ${value}`)
      .join(", ")}`,
    `- Tags: ${command.tags.join(", ") || "none"}`,
  ];
  return { state: "done", result: lines.join("\n"), model, usage: null, free: true };
}

/** Puts a message into a conversation of its own (`--new`), unless it began one. */
async function beginAnew(
  app: App,
  { message, inbox }: { message: MessageRow; inbox: InboxRow },
): Promise<MessageRow> {
  if (!(await hasEarlierMessages(app.db, message))) return message;
  const conversation_id = await app.write(async (tx) => {
    const id = await startConversation(app, tx, { inbox, subject: message.subject ?? "" });
    await tx.updateTable("messages").set({ conversation_id: id }).where("id", "=", message.id).execute();
    return id;
  });
  return { ...message, conversation_id };
}

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
  app.log.info({ code: answer.code, seconds }, "the model will be asked again");
  await app.write((tx) => postponeJob(tx, job, { run_at: app.after(seconds), error: answer.message }));
  app.worker?.wake(job.kind);
}
