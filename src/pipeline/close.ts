import { closeMessage, type Closing } from "./close-message.ts";
import { OF_ITS_TEXTS } from "./tell-owner.ts";
import type { FailureReason } from "../reasons.ts";
import type { ToolFile } from "../trust/guard/tool.ts";
import type { App, RunEnd } from "../app.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";
import { tellOfUndone } from "../resources/billing/budgets.ts";
import { releaseCredit, RUN_CREDITS, settleCredit } from "../resources/billing/ledger.ts";
import { leaveRequest } from "../resources/approvals/approvals.ts";
import { noteTurn } from "../resources/conversations/conversations.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { waitAtMost } from "../lib/deadline.ts";
import { parseJson } from "../lib/foreign-json.ts";
import type { IncomingFile } from "../inbound/accept.ts";
import { bytesOf, storeFiles } from "../resources/messages/stored-files.ts";
import { sumOfUsage, type Usage } from "../resources/messages/rules-found.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { noteHeldUp, noteRead } from "../resources/schedules/run-ends.ts";
import { recordState } from "../resources/messages/events.ts";
import { answerTo } from "./answer.ts";
import { prepareAsking } from "./asking.ts";
import { filesOut } from "./answer-file.ts";
import type { Command } from "./command.ts";
import { countTokens } from "./count-tokens.ts";
import { type Journal, notAsked } from "./earlier-calls.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { KEY_REVOKED } from "./end-without-key.ts";
import { type DataForm, inForm } from "./form.ts";
import type { UsedContext } from "../resources/contexts/shapes.ts";
import { type RunInput } from "./input.ts";
import { type Lacking, wordsLacking } from "./lacking.ts";
import type { Trust } from "../trust/shown/links.ts";
import type { HeldCall } from "./hold-call.ts";
import { forgetMaterial, PRIVATE_WORDS, withoutWords } from "./private.ts";
import type { CallRecord } from "./recorded-calls.ts";
import { roomLeft } from "./room-left.ts";
import { prepareForward } from "./forward.ts";
import type { Ruled } from "./rules.ts";
import type { RunSettings } from "./settings.ts";
import { type StepDraft, toSteps, warningStep } from "./steps.ts";
import { forgetCalls, keepCalls, stepsOfEarlier } from "./tool-journal.ts";
import { whyUnanswered } from "./unanswered.ts";
import { MB } from "../lib/sizes.ts";

/**
 * How long closing a run may hold its turn. One that takes longer waits for a thread or the disk, and lets others pass.
 */
const TURN_MS = 1_000;

/** The most that is kept of a result. */
const MAX_RESULT_BYTES = MB;
const CUT = "The result was cut here: at most 1 MB of one is kept.";

/** How a run ended, before it is written down. */
export type Ending =
  | {
      state: "done";
      result: string;
      /** Null where no model was asked. */
      model: string | null;
      usage: Usage | null;
      /** Set if nothing was done that costs a credit. */
      free?: true;
      /** Set if the result is data of that form, and so no Markdown. */
      form?: DataForm;
      /** The request for consent that an answer to the mail with the result goes to. */
      about?: string;
    }
  | Unmade;

/** A run without a result; `limited` where that lies in what its owner allows it to cost. */
export interface Unmade {
  state: "failed" | "limited";
  reason: FailureReason;
  error: string;
}

export interface Run {
  job: Job;
  signal: AbortSignal;
  message: MessageRow;
  inbox: InboxRow;
  owner_email: string;
  owner_verified: number;
  owner_plan: UserRow["plan"];
  owner_timezone: string;
  input: RunInput;
  ruled: Ruled;
  command: Command;
  settings: RunSettings;
  /** The contexts and the macro that it was given. */
  used: UsedContext[];
  steps: StepDraft[];
  /** As the column of the message. */
  from_memory: boolean;
  /** Whether the message is known to begin its conversation, so that there are no earlier turns to read. */
  begins: boolean;
  /** Which model is asked, once that is known. */
  connection?: OpenConnection;
  /** What models have read, written and cost so far. */
  usage?: Usage | null;
  /** Files that tools made, in order. */
  made: ToolFile[];
  trust: Trust;
  /** What the instruction would have had to say to allow what was blocked. */
  lacking: Lacking;
  /** Whether tools may have changed something, in this try or an earlier one. */
  changed: boolean;
  journal: Journal;
  /** Calls that wait for the consent of the owner; they are stored once the run is done. */
  held: HeldCall[];
  /** In a replay, what tools said in the run before: none of them is called. */
  record?: CallRecord;
  /** Whether the material could not be shown to the model. */
  unread?: boolean;
  /** What may still have cost its answer links where the model began with nothing but its owner's words. */
  alone?: { few_words: boolean; servers: string[] };
  /** Called in the transaction that closes the run: what it writes besides. */
  alongside?: (tx: Db) => Promise<void>;
}

/**
 * Ends a message in one transaction: its result, its credit, its files, its answer and its job. Whoever has a key that was revoked
 * since the run began gets nothing of it.
 */
export async function closeRun(app: App, run: Run, whole: Ending): Promise<void> {
  const { account: who, strangers } = sourceOf(run.message);
  const is_revoked = await isKeyRevoked(app.db, run.message);
  const no_more = { ...run, alongside: async () => undefined };
  const revoked = { state: "failed", ...KEY_REVOKED } as const;
  const end = () => (is_revoked ? close(app, no_more, revoked) : close(app, run, whole));
  let closed: Promise<void> | undefined;
  await app.endings({ who, strangers }, () => waitAtMost(TURN_MS, (closed = end())));
  await closed;
}

async function close(app: App, run: Run, ended: Ending): Promise<void> {
  const { message } = run;
  const whole = await inForm(app, run, ended);
  run.steps.push(...stepsOfEarlier(notAsked(run.journal)));
  const files =
    whole.state === "done" && whole.free === undefined ? await filesOut(app, run, whole.result) : [];
  const ending = shortened(run, whole);
  const asking = await prepareAsking(app, run, ending);
  const words = [...asking.words, ...wordsLacking(run.lacking, run)];
  const room = await roomLeft(app, run, { files, ending });
  // The order differs because strangers are told nothing of an account, except about a file that they do not get.
  if (hasAuthority(message)) run.steps.push(...room.warnings);
  const forward = await prepareForward(app, run, run.ruled.do.forward_to);
  const reply = await answerTo(app, run, ending, { files, words, room });
  if (!hasAuthority(message)) run.steps.push(...room.warnings);
  run.steps.push(...words.map(warningStep));
  const told = withWords(run, ending, words);
  const kept = told.state === "done" && run.settings.private ? keptOf(app, run, told) : { run, ending: told };
  let row = message;
  const keeps = (file: IncomingFile) => kept.run === run && !room.left_out.has(file);
  const stored = runFiles(run, files);
  const stores = bytesOf(stored.flatMap((some) => some.files).filter(keeps));
  const closing = async (tx: Db): Promise<Job | undefined> => {
    await finishJob(tx, run.job);
    if (run.changed) await (ending.state === "done" ? forgetCalls : keepCalls)(tx, message.id);
    const closed = closingColumns(app, kept.run, kept.ending);
    await storeRunFiles(app, tx, stored, keeps);
    // The event of an answered message is held until its answer is on its way.
    const held = reply !== undefined && ending.state === "done";
    const event_id = await recordState(app, tx, { ...message, ...closed }, held);
    await writeBesides(tx, [forward?.queue, run.alongside, asking.queue]);
    await leaveRequest(app, tx, message, run.journal.earlier);
    const reply_status = reply ? await reply.queue(tx, held ? event_id : null) : "none";
    row = { ...message, ...closed, reply_status };
    await closeMessage(tx, { ...closed, id: message.id, reply_status });
    // If there is an answer, the queue of outgoing mail notes what became of it.
    const reply_error = reply_status === "none" ? whyUnanswered(run, ending) : null;
    if (reply_error !== null) await noteUnanswered(tx, { id: message.id, reply_error });
    await noteWhatWasRead(app, tx, run, ending);
    if (kept.run !== run) await forgetMaterial(app, tx, message);
    await tellOfUndone(app, tx, row);
    await (kept.ending.state === "done"
      ? settleTurn(app, tx, run, kept.ending)
      : releaseCredit(app, tx, message));
    return app.worker?.claimNext(tx, run.job);
  };
  const next = await writeOutcome(app, run.signal, closing, { stores });
  if (next) app.worker?.follow(next);
  app.finished.notify(message.id, {
    row,
    made_files: files.length > 0,
    unstored: unstoredOf(run, told),
  });
  measure(app, run, ending);
  tellLog(app, run, ending);
}

async function writeBesides(tx: Db, parts: (((tx: Db) => Promise<unknown>) | undefined)[]): Promise<void> {
  for (const part of parts) await part?.(tx);
}

/** The next run of a schedule begins behind what this one has read, and only then. */
async function noteWhatWasRead(
  app: App,
  tx: Db,
  { message, input, settings, unread }: Run,
  ending: Ending,
): Promise<void> {
  const { schedule_id } = message;
  const { read_up_to, read_from } = input;
  if (schedule_id === null || read_up_to === undefined) return;
  if (ending.state !== "done" || settings.dry_run || unread === true) return;
  await noteRead(app, tx, { id: schedule_id, read_from, read_up_to, message_id: message.id });
  const held_up = input.gathered?.held_up;
  // A run without mail is not mailed: else nobody would hear of a mail that holds up all others.
  if (held_up !== undefined) await noteHeldUp(tx, { id: schedule_id, reason: held_up });
}

function tellLog(app: App, { inbox, connection, message }: Run, ending: Ending): void {
  const ms = app.nowMs() - message.accepted_ms;
  const said = { inbox: inbox.label, inbox_id: inbox.id, model: connection?.model, ms };
  if (ending.state === "done") return app.log.info({ ...said, model: ending.model }, "message done");
  const { reason } = ending;
  // What fails at a user's own connection is the user's to mend, and is said to the user.
  const is_ours = connection?.trusted === true && !OF_ITS_TEXTS.has(reason);
  app.log[is_ours ? "warn" : "info"]({ reason, ...said }, "message failed");
}

function measure(app: App, { message }: Run, ending: Ending): void {
  const { source, accepted_ms } = message;
  const seconds = (app.nowMs() - accepted_ms) / 1_000;
  app.metrics.time("mailwright_route_seconds", { source, state: ending.state }, seconds);
  if (ending.state !== "done") return;
  countTokens(app, ending.usage);
  if (!ending.free && source !== "test")
    app.metrics.count("mailwright_credits_charged_total", {}, RUN_CREDITS);
}

function shortened(run: Run, ending: Ending): Ending {
  if (ending.state !== "done" || Buffer.byteLength(ending.result) <= MAX_RESULT_BYTES) return ending;
  run.steps.push(warningStep(CUT));
  const { read } = new TextEncoder().encodeInto(ending.result, new Uint8Array(MAX_RESULT_BYTES));
  return { ...ending, result: `${ending.result.slice(0, read)}\n\n${CUT}` };
}

/**
 * Adds to a result the words that would allow what was blocked. A result that a program is to read stays as it is: only
 * its steps have them.
 */
function withWords({ settings }: Run, ending: Ending, words: string[]): Ending {
  if (ending.state !== "done" || words.length === 0) return ending;
  if (settings.for_programs || parseJson(ending.result) !== undefined) return ending;
  return { ...ending, result: [ending.result, ...words].join("\n\n") };
}

/** The words of a call that a rule has had read as material: they are asked for again where it is tried again. */
function wordsOfCall({ raw_mail_id, instruction }: MessageRow): string {
  return raw_mail_id === null ? (instruction ?? "") : "";
}

/** The part of a private run that is written down. */
function keptOf(app: App, run: Run, ending: Ending & { state: "done" }): { run: Run; ending: Ending } {
  const { result, command, steps } = withoutWords(
    run.command,
    run.steps,
    app.config.outbound.mode === "capture",
  );
  const message = { ...run.message, instruction: null };
  return { run: { ...run, message, command, steps }, ending: { ...ending, result } };
}

/** The answer of a private run. It is stored nowhere, so that whoever waits for it can get it only from here. */
function unstoredOf({ settings, steps }: Run, ending: Ending): RunEnd["unstored"] {
  if (ending.state !== "done" || !settings.private) return undefined;
  return { result: ending.result, steps: toSteps(steps) };
}

/** The files whose rows are written at the end of a run: those of its mail, as a call has brought its own, and those it made. */
function runFiles({ message, input }: Run, made: ToolFile[]) {
  const message_id = message.id;
  const brought = message.raw_mail_id === null ? [] : input.files;
  return [
    { message_id, direction: "in" as const, files: brought },
    { message_id, direction: "out" as const, files: made },
  ];
}

async function storeRunFiles(
  app: App,
  tx: Db,
  stored: ReturnType<typeof runFiles>,
  keeps: (file: IncomingFile) => boolean,
): Promise<void> {
  for (const files of stored) await storeFiles(app, tx, { ...files, keeps });
}

async function settleTurn(
  app: App,
  tx: Db,
  { message, settings }: Run,
  { result, free }: Ending & { state: "done" },
): Promise<void> {
  await (free ? releaseCredit(app, tx, message) : settleCredit(app, tx, message));
  const { conversation_id, sender } = message;
  const reply = settings.private ? PRIVATE_WORDS : result;
  await noteTurn(tx, { conversation_id, sender, reply, now: app.orderNow() });
}

const noteUnanswered = prepared((db, row: { id: string; reply_error: string }) =>
  db.updateTable("messages").set({ reply_error: row.reply_error }).where("id", "=", row.id),
);

const NOTHING_YET = {
  error: null,
  reason: null,
  result: "",
  model: null,
  input_tokens: null,
  output_tokens: null,
  cost: null,
  credits_charged: 0,
};

function closingColumns(app: App, run: Run, ending: Ending): Closing {
  const columns = {
    ...NOTHING_YET,
    state: ending.state,
    instruction: run.command.raw || wordsOfCall(run.message),
    command: JSON.stringify(run.command),
    steps: JSON.stringify(toSteps(run.steps)),
    completed: app.now(),
    duration_ms: app.nowMs() - run.message.accepted_ms,
    contexts: JSON.stringify(run.connection === undefined ? [] : run.used),
    from_memory: Number(run.from_memory),
    ...run.ruled.usage,
    // What a run has cost that failed was spent as well.
    cost: sumOfUsage(run.usage ?? null, run.ruled.usage)?.cost ?? null,
  };
  if (ending.state !== "done") {
    const model = run.connection?.model ?? null;
    return { ...columns, error: ending.error, reason: ending.reason, model };
  }
  const credits_charged = ending.free || run.message.source === "test" ? 0 : RUN_CREDITS;
  return {
    ...columns,
    ...sumOfUsage(run.usage ?? null, run.ruled.usage),
    result: ending.result,
    model: ending.model,
    credits_charged,
  };
}
