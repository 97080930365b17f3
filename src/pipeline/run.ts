import type { Completion } from "../ai/llm.ts";
import type { App } from "../app.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";
import { hasEarlierMessages, startConversation } from "../resources/conversations/conversations.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { StorageError } from "../db/storage-faults.ts";
import { AppError, fullText } from "../errors.ts";
import { reserveOwed } from "../inbound/credit.ts";
import { waitIfPaused } from "../resources/inboxes/resume.ts";
import { buryJob, finishJob, type Job, returnJob } from "../jobs/queue.ts";
import { backToLane, waitForTime } from "../jobs/waits.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import { rulesFound, withoutWait } from "../resources/messages/rules-found.ts";
import { deadline } from "../lib/deadline.ts";
import { findConnection } from "./choose-connection.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import { journalOf } from "./earlier-calls.ts";
import { endByRule } from "./end-by-rule.ts";
import { messageById } from "../resources/messages/messages.ts";
import { failMessage } from "./fail.ts";
import { readInput, type RunInput } from "./input.ts";
import { type StepDraft, toSteps, warningStep } from "./steps.ts";
import { notedCalls } from "./tool-journal.ts";
import { withGathered } from "./digest.ts";
import { readInstruction, type Understanding } from "./read-instruction.ts";
import { runWithModel } from "./run-with-model.ts";
import { askAgainLater, retryLater } from "./ask-again-later.ts";
import { againAfter } from "./model-pause.ts";
import { judgeByRules, narrowed, noteRules, type Ruled } from "./rules.ts";
import { endWithoutInbox } from "./end-without-inbox.ts";
import { endWithoutKey } from "./end-without-key.ts";
import { endWithoutModel } from "./end-without-model.ts";
import { type Loaded, withInbox } from "./with-inbox.ts";
import type { FreshCall } from "../inbound/accept.ts";
import { contentLost, isLost, isRowUnreadable, mayComeBack } from "../resources/messages/stored-bytes.ts";

/**
 * Works on an accepted message: reads it, asks the model, and closes it in one transaction with its result, its credit,
 * its answer and its job. If the process dies on the way, the run is done again from the start.
 */
export async function runNow(app: App, job: Job<"route_message">, signal: AbortSignal): Promise<void> {
  try {
    await runMessage(app, job, signal);
  } finally {
    app.progress.delete(job.payload.message_id);
  }
}

async function runMessage(app: App, job: Job<"route_message">, signal: AbortSignal): Promise<void> {
  const fresh = job.fresh as FreshCall | undefined;
  const [message] = fresh ? [fresh.message] : await messageById(app.db, { id: job.payload.message_id });
  const loaded = message?.state === "received" ? await withInbox(app, message) : undefined;
  if (!loaded) return endWithoutInbox(app, job);
  if (await endWithoutKey(app, job, loaded.found.message)) return;
  if (await waits(app, job, loaded.found)) return;
  if (job.payload.owes_until !== undefined) return reserveOwed(app, job, loaded.found.message);
  await runLoaded(app, job, { ...loaded, fresh, signal });
}

async function runLoaded(
  app: App,
  job: Job<"route_message">,
  { found: loaded, doubts, fresh, signal }: Loaded & { fresh: FreshCall | undefined; signal: AbortSignal },
): Promise<void> {
  const begun = await beginByRules(app, job, { loaded, fresh, signal });
  if (begun === undefined) return;
  const { found, input, ruled } = begun;
  const asked = await readInstruction(app, found, input, ruled);
  const { command, settings, used, from_memory } = asked;
  const warnings = [...doubts, ...input.warnings].map(warningStep);
  const steps: StepDraft[] = [...input.extracted, ...warnings, ...asked.steps];
  const outset = await outsetOf(app, found.message, fresh);
  const known = { input, ruled, command, settings, used, from_memory };
  const run: Run = { ...found, job, signal, ...known, steps, ...outset };
  app.progress.set(run.message.id, () => toSteps(run.steps));
  if (asked.refusal) return closeRun(app, run, { state: "failed", ...asked.refusal });
  if (await endWithoutModel(app, run, asked)) return;
  const connection = await findConnection(app, run);
  if ("state" in connection) return closeRun(app, run, connection);
  run.connection = connection;
  if (settings.dry_run)
    return closeRun(app, run, planOf(asked, connection, run.message.authority === "owner"));
  if (settings.fresh) run.message = await beginAnew(app, found);
  using cap = deadline(signal, app.config.routing.hard_cap_seconds * 1_000);
  const answer = await runWithModel(app, run, { asked, connection, cap });
  if (signal.aborted && !answer.ok) throw signal.reason;
  const tried = { answer, failures: job.failures, out_of_time: cap.signal.aborted };
  // What tools have changed by the end of its time is not gone on with unasked.
  const again = tried.out_of_time && run.changed ? undefined : againAfter(app, tried, run.message);
  if (again !== undefined) return retryLater(app, job, run, again);
  await closeRun(app, run, endingOf(answer, run));
}

type Begun = Pick<Loaded, "found"> & { input: RunInput; ruled: Ruled };

/**
 * Reads what a message says, and what the rules of its inbox say about it. Undefined where the run is over with that: its
 * content is lost, or a rule has it wait, left out or kept.
 */
async function beginByRules(
  app: App,
  job: Job<"route_message">,
  { loaded, fresh, signal }: { loaded: Loaded["found"]; fresh: FreshCall | undefined; signal: AbortSignal },
): Promise<Begun | undefined> {
  const from = { fresh, signal, brought: job.payload.brought };
  const input = await inputOrLoss(app, loaded, from);
  if ("lost" in input) {
    await endWithoutContent(app, job, input);
    return undefined;
  }
  const ruled = await judgeByRules(app, { ...loaded, timezone: loaded.owner_timezone, input }, signal);
  const { end, until, again } = ruled;
  if (again !== null) {
    await askAgainLater(app, job, loaded, again);
    return undefined;
  }
  if (until !== null) await waitByRule(app, job, loaded, ruled);
  else if (await hasWaited(app, job, loaded.message)) return undefined;
  else if (end !== null) await endByRule(app, { ...loaded, job, signal }, { ...ruled, end });
  if (until !== null || end !== null) return undefined;
  const message = narrowed(loaded.message, ruled);
  const less = { ...loaded, message };
  const read = message === loaded.message ? input : await readInput(app, less, from);
  return {
    found: { ...loaded, message },
    input: await withGathered(app, { ...loaded, message }, { input: read, signal }),
    ruled,
  };
}

/** The state in which a run begins. Only a run that is not the first try may have calls of earlier tries. */
async function outsetOf(
  app: App,
  message: MessageRow,
  fresh: FreshCall | undefined,
): Promise<Pick<Run, "made" | "trust" | "lacking" | "changed" | "journal" | "held" | "begins">> {
  const journal = journalOf(fresh ? [] : await notedCalls(app.db, message.id));
  const trust = { tainted: true, trusted_text: "", material: "" };
  const changed = journal.earlier.length > 0;
  return { made: [], trust, lacking: new Map(), changed, journal, held: [], begins: fresh?.begins ?? false };
}

/**
 * Whether a run waits because its inbox is paused. A run that was begun before goes on, and so does a call, whose
 * caller may be waiting; what a button has allowed is mailed, and waits like a mail.
 */
async function waits(
  app: App,
  job: Job<"route_message">,
  { message, inbox }: Pick<Run, "message" | "inbox">,
): Promise<boolean> {
  const is_awaited = message.source !== "email" && message.approval_id === null;
  const is_new = !is_awaited && job.attempts === 1;
  return inbox.paused !== null && is_new && waitIfPaused(app, job, inbox);
}

interface Loss {
  lost: AppError;
  /** True if the row of the content cannot be read: the loss can then not be noted in the database. */
  row: boolean;
}

async function inputOrLoss(
  app: App,
  found: Loaded["found"],
  from: Parameters<typeof readInput>[2],
): Promise<RunInput | Loss> {
  try {
    return await readInput(app, found, from);
  } catch (error) {
    if (isLost(error) && mayComeBack(app, error))
      throw new StorageError("CONTENT_MISSING", `${error.message} It is waited for.`);
    if (isLost(error)) return { lost: error, row: error.of_rows };
    if (await isRowUnreadable(app, found.message, error)) return { lost: contentLost(), row: true };
    throw error;
  }
}

/**
 * Ends a message whose content is missing on the disk for good: to try again would not help, and to answer without the
 * content would hide the loss. If only the job can tell of it, the job is kept for somebody to look at.
 */
async function endWithoutContent(app: App, job: Job<"route_message">, { lost, row }: Loss): Promise<void> {
  const error = fullText(lost);
  if (row)
    app.log.error(
      "a row of what a message came with is lost, or cannot be read: it is given up, and its job kept",
    );
  await app.write(async (tx) => {
    await (row ? buryJob(app, tx, job, error) : finishJob(tx, job));
    await failMessage(app, tx, job, { reason: "content_lost", error });
  });
}

/**
 * Says what a run would have done (`--dry-run`). The owner is told all of it, others only what they have typed themselves: how the
 * owner sorts their mail and what they have the model do with it is not theirs to know.
 */
function planOf(
  { instruction, contexts, command, as_typed, targets }: Understanding,
  { model }: OpenConnection,
  for_owner: boolean,
): Ending {
  const shown = for_owner
    ? { ...command, command: instruction, contexts: contexts.map(({ slug }) => slug) }
    : as_typed;
  const options = Object.entries(shown.options).map(([name, value]) => `${name} = ${value}`);
  const lines = [
    "Nothing was done and nothing was charged. This is what would have been done:",
    `- Instruction: ${shown.command || "(none)"}`,
    ...(for_owner ? [`- Model: ${model}`] : []),
    `- Tools of: ${targets.map(({ name }) => `@${name}`).join(", ") || "none"}`,
    `- Contexts: ${shown.contexts.join(", ") || "none"}`,
    `- Options: ${options.join(", ") || "none"}`,
    `- Tags: ${shown.tags.join(", ") || "none"}`,
    ...(for_owner ? [] : ["What the owner of this inbox has set up for it comes on top."]),
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

export function endingOf(
  answer: Completion,
  { settings, changed }: Pick<Run, "settings" | "changed">,
): Ending {
  if (!answer.ok) {
    const { model, by_rule } = settings;
    const is_asked_for = model !== null && answer.code === "model_not_found";
    const words = by_rule.model === undefined ? ASKED_FOR(model ?? "") : ASKED_BY(by_rule.model);
    const error = is_asked_for ? answer.message.replace(OF_CONNECTION, words) : answer.message;
    // A limited message has done nothing: what has changed something is known by its failure when it is tried again.
    const is_limited = answer.code === "budget_used_up" && !changed;
    return { state: is_limited ? "limited" : "failed", reason: answer.code, error };
  }
  return { state: "done", result: answer.text, model: answer.model, usage: answer.usage };
}

const OF_CONNECTION = "Choose another one in this connection.";
const ASKED_FOR = (model: string): string =>
  `It was asked for with --model=${model}: leave that out, or name a model that there is.`;

const ASKED_BY = (rule: string): string =>
  `The rule “${rule}” of the inbox asks for it: name a model there that there is, or take it out of the rule.`;

/** Has a message wait as a rule asks, and says so: on the message, and to whoever waits for its end. */
async function waitByRule(
  app: App,
  job: Job<"route_message">,
  { message, inbox, owner_timezone }: Loaded["found"],
  { until, wait, steps }: Ruled,
): Promise<void> {
  if (until === null) return;
  // It waits for the rules themselves: it has its turn in its conversation all the same.
  if (wait === null) return app.write((tx) => returnJob(tx, job, { run_at: until }));
  const output = `The rule “${wait.rule}” has it wait until ${writtenMoment(until, owner_timezone)}.`;
  const told = JSON.stringify(toSteps([...steps, { type: "context", name: "rule", output }]));
  await app.write(async (tx) => {
    await waitForTime(tx, job, { inbox_id: inbox.id, until });
    const [now] = await messageById(tx, { id: message.id });
    const rules = JSON.stringify({ ...(now ? rulesFound(now) : {}), until });
    await tx.updateTable("messages").set({ rules, steps: told }).where("id", "=", message.id).execute();
  });
  app.changes.tell(message.user_id, message.id);
  app.finished.notify(message.id, { row: message, made_files: true, unstored: undefined });
}

/** Puts a message whose wait is over back into its conversation: it is worked on when it is its turn there. */
async function hasWaited(
  app: App,
  job: Job<"route_message">,
  { id, conversation_id, rules }: MessageRow,
): Promise<boolean> {
  if (rulesFound({ rules }).until === undefined) return false;
  await app.write(async (tx) => {
    const [message] = await messageById(tx, { id });
    const rules = message ? withoutWait(message, app.nowMs()) : { waited: true };
    await backToLane(tx, job, { lane: conversation_id, now: app.now() });
    await noteRules(tx, { id, rules: JSON.stringify(rules) });
  });
  app.worker?.wake(job.kind);
  return true;
}
