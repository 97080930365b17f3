import type { App } from "../app.ts";
import { type Db, afterCommit } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow, ReplayRow } from "../db/schema.ts";
import { jsonMember } from "../db/json.ts";
import { fullText } from "../errors.ts";
import { finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { deadline } from "../lib/deadline.ts";
import type { FailureReason } from "../reasons.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import { releaseCredit, RUN_CREDITS, settleCredit } from "../resources/billing/ledger.ts";
import { versionsOf } from "../resources/contexts/given-versions.ts";
import { broughtWith } from "../resources/messages/brought.ts";
import { messageById } from "../resources/messages/messages.ts";
import type { UsedContext } from "../resources/contexts/shapes.ts";
import { isLost } from "../resources/messages/stored-bytes.ts";
import { tellPages } from "../resources/replays/replays.ts";
import { type Asked, askedOf } from "../resources/replays/view.ts";
import { storedJson } from "../lib/stored-json.ts";
import { findConnection } from "./choose-connection.ts";
import type { Ending, Run } from "./close.ts";
import { countTokens } from "./count-tokens.ts";
import { journalOf } from "./earlier-calls.ts";
import { KEY_REVOKED } from "./end-without-key.ts";
import { withinBudget } from "./fold-contexts.ts";
import { inForm } from "./form.ts";
import { readInput, type RunInput } from "./input.ts";
import { type Again, againAfter } from "./model-pause.ts";
import { readInstruction, type Understanding } from "./read-instruction.ts";
import { recordOf } from "./recorded-calls.ts";
import { narrowed, ruledAgain } from "./rules.ts";
import { endingOf } from "./run.ts";
import { runWithModel } from "./run-with-model.ts";
import { isAboutTimes } from "./schedule.ts";
import type { RunSettings } from "./settings.ts";
import { type StepDraft, toSteps, warningStep } from "./steps.ts";
import { type Verdict, verdictOn } from "./verdict.ts";
import { type Loaded, withInbox } from "./with-inbox.ts";

type ReplayJob = Job<"replay_message">;

/**
 * Works on a message as its run would, and writes what comes of it beside the message: nothing is mailed, no tool is called, and the
 * message stays as it is. If the process dies on the way, the replay is done again from the start.
 */
export async function replayNow(app: App, job: ReplayJob, signal: AbortSignal): Promise<void> {
  const [replay] = await replayById(app.db, { id: job.payload.replay_id });
  const [message] = await messageById(app.db, { id: job.payload.message_id });
  const loaded = message && (await withInbox(app, message));
  // What was deleted meanwhile has released its credit, or goes with its account.
  if (replay?.state !== "received") return writeOutcome(app, signal, (tx) => finishJob(tx, job));
  if (!message || !loaded) return close(app, { job, signal, replay }, NOWHERE);
  const began = app.nowMs();
  const replayed = await work(app, { job, signal, replay, loaded });
  if ("again" in replayed) {
    const { failure, seconds } = replayed.again;
    return app.write((tx) => postponeJob(tx, job, { run_at: app.after(seconds), error: failure.message }));
  }
  await close(app, { job, signal, replay, began }, replayed);
}

/** Ends a replay whose job is given up, in the transaction that buries the job. */
export async function giveUpReplay(app: App, tx: Db, job: Pick<ReplayJob, "payload">): Promise<void> {
  await endUnfinished(app, tx, job.payload.replay_id, BROKEN);
}

/** Ends the replay of a job that the operator takes out of the queue, with the operator's reason. */
export async function dropReplay(
  app: App,
  tx: Db,
  { payload }: Pick<ReplayJob, "payload">,
  error: string,
): Promise<void> {
  await endUnfinished(app, tx, payload.replay_id, { reason: "dropped", error });
}

/** Ends the replays that wait for a job and have none, which only a damaged database makes. */
export async function endLostReplays(app: App, tx: Db): Promise<void> {
  for (const { id } of await lostReplays(tx, {})) await endUnfinished(app, tx, id, BROKEN);
}

const lostReplays = prepared((db, _none: object) =>
  db
    .selectFrom("replays")
    .select("id")
    .where("state", "=", "received")
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("jobs")
            .select("jobs.id")
            .where("kind", "=", "replay_message")
            .whereRef(jsonMember("payload", "replay_id"), "=", "replays.id"),
        ),
      ),
    ),
);

const BROKEN = {
  reason: "internal" as const,
  error: "The replay could not be finished because of a fault of this server; its log says more.",
};

interface Replayed extends Pick<Run, "connection" | "usage"> {
  ending: Ending;
  steps: StepDraft[];
  used: UsedContext[];
  verdict?: Verdict;
}

const NOWHERE = failed("inbox_deleted", "The inbox of this message has been deleted.");

interface Replaying {
  job: ReplayJob;
  signal: AbortSignal;
  replay: ReplayRow;
  loaded: Loaded;
}

async function work(
  app: App,
  { job, signal, replay, loaded: { found, doubts } }: Replaying,
): Promise<Replayed | { again: Again }> {
  const asked = askedOf(replay);
  const read = await inputOf(app, found, { asked, signal });
  if ("error" in read) return failed("content_lost", read.error);
  const { input, ruled, message } = read;
  const known = { ...found, message };
  const understood = otherwise(
    await withContexts(app, { message, asked }, await readInstruction(app, known, input, ruled)),
    asked,
  );
  const { command, settings, used, from_memory } = understood;
  const steps = [...input.extracted, ...[...doubts, ...input.warnings].map(warningStep), ...understood.steps];
  const run: Run = {
    ...known,
    job,
    signal,
    input,
    ruled,
    command,
    settings,
    used,
    from_memory,
    steps,
    made: [],
    held: [],
    lacking: new Map(),
    changed: false,
    begins: false,
    journal: journalOf([]),
    trust: { tainted: true, trusted_text: "", material: "" },
    record: recordOf(message),
  };
  const refusal = refusalOf(understood);
  if (refusal !== null) return { ...failed(refusal.reason, refusal.error), steps };
  const connection = await findConnection(app, run);
  if ("state" in connection) return { ending: connection, steps, used };
  run.connection = connection;
  using cap = deadline(signal, app.config.routing.hard_cap_seconds * 1_000);
  const answer = await runWithModel(app, run, { asked: understood, connection, cap });
  if (signal.aborted && !answer.ok) throw signal.reason;
  const tried = { answer, failures: job.failures, out_of_time: cap.signal.aborted };
  const again = againAfter(app, tried, AS_A_CALL);
  if (again !== undefined) return { again };
  const ending = await inForm(app, run, endingOf(answer, run));
  if (run.made.length > 0) steps.push(warningStep(unkept(run)));
  const verdict = await verdictOn(app, run, replay, ending);
  return { ending, steps, used, connection, usage: run.usage ?? null, verdict };
}

/** Somebody looks at the page meanwhile, whatever the message came by. */
const AS_A_CALL = { source: "api", schedule_id: null } as const;

function failed(reason: FailureReason, error: string): Replayed {
  return { ending: { state: "failed", reason, error }, steps: [], used: [] };
}

function unkept({ made }: Run): string {
  return `A replay keeps no files. It made: ${made.map(({ filename }) => filename).join(", ")}.`;
}

/** What the message says, as its run read it, or what is to be done with it instead; and what the rules of its inbox say. */
async function inputOf(
  app: App,
  found: Loaded["found"],
  { asked, signal }: { asked: Asked; signal: AbortSignal },
) {
  const from = { brought: broughtWith(found.message), signal };
  try {
    const whole = await readInput(app, found, from);
    const ruled = await ruledAgain(app, { ...found, timezone: found.owner_timezone, input: whole });
    const message = narrowed(found.message, ruled);
    const input = message === found.message ? whole : await readInput(app, { ...found, message }, from);
    if (asked.instruction === undefined) return { input, ruled, message };
    // Whoever asks for the replay is the owner, or has a key of the owner's: these words are theirs.
    return {
      input: instructed(input, asked.instruction),
      ruled,
      message: { ...message, authority: "owner" as const },
    };
  } catch (error) {
    if (!isLost(error)) throw error;
    return { error: fullText(error) };
  }
}

function instructed(input: RunInput, instruction: string): RunInput {
  const words = {
    instruction,
    sure: instruction,
    may_allow: instruction,
    opening: "",
    subject: "",
    page: "",
  };
  return { ...input, ...words, names: true, may_share: null, plain: false };
}

/** The contexts of a replay are those of the run before, as they were then, unless it asks for others. */
async function withContexts(
  app: App,
  { message, asked }: { message: MessageRow; asked: Asked },
  understood: Understanding,
): Promise<Understanding> {
  const then = storedJson<UsedContext[]>(message.contexts, []);
  const chosen = asked.contexts === "now" || then.length === 0 ? understood.used : then;
  const given = Object.entries(asked.context_versions ?? {}).map(([id, version]) => ({ id, version }));
  const isGiven = ({ id }: { id: string }): boolean => given.some((one) => one.id === id);
  const wanted = [...chosen.filter((one) => !isGiven(one)), ...given];
  if (Bun.deepEquals(wanted, understood.used)) return understood;
  const kept = await versionsOf(app.db, { id: message.user_id }, wanted);
  const lost = chosen.filter((one) => !isGiven(one) && !kept.has(one.id));
  // The text of a macro is part of the instruction, which is read as it is now.
  const documents = [...kept.values()].filter(({ kind }) => kind !== "command");
  const texts = new Map(documents.map(({ id, body: text, version }) => [id, { text, version }]));
  const { contexts, notes } = withinBudget(documents, texts);
  const macros = understood.used.filter(({ id }) => !understood.contexts.some((one) => one.id === id));
  return {
    ...understood,
    contexts,
    used: [...contexts.map(({ id, slug, version }) => ({ id, slug, version })), ...macros],
    steps: [
      ...understood.steps.filter(({ type, name }) => type !== "context" || !NOTES.has(name ?? "")),
      ...notes.map(({ name, sentence }) => ({ type: "context" as const, name, output: sentence })),
      ...lost.map(({ slug, version }) =>
        warningStep(`Context ${slug} (version ${version}) is not kept any more.`),
      ),
    ],
  };
}

const NOTES = new Set(["context", "context_truncated"]);

/** What is asked of the model counts for more than what the message or a rule says. */
function otherwise(understood: Understanding, { connection_id, model }: Asked): Understanding {
  const { settings } = understood;
  const chosen: Partial<RunSettings> = {
    ...(connection_id === undefined ? {} : { connection: connection_id, model: null }),
    ...(model === undefined ? {} : { model }),
  };
  const { connection, model: by_model, ...by_rule } = settings.by_rule;
  const rest = {
    ...by_rule,
    ...(connection_id === undefined && connection !== undefined ? { connection } : {}),
    ...(connection_id === undefined && model === undefined && by_model !== undefined
      ? { model: by_model }
      : {}),
  };
  return { ...understood, settings: { ...settings, ...chosen, by_rule: rest } };
}

function refusalOf({ refusal, command, settings }: Understanding): Understanding["refusal"] {
  if (refusal !== null) return refusal;
  if (isAboutTimes(command.options)) return { reason: "replay_refused", error: LASTING };
  return settings.private ? { reason: "replay_refused", error: PRIVATE } : null;
}

const LASTING = "A replay makes nothing that lasts. Leave out the flags about times.";
const PRIVATE = "What a replay says is kept, so that none can be private. Leave out --private.";

interface Closing {
  job: ReplayJob;
  signal: AbortSignal;
  replay: ReplayRow;
  began?: number;
}

async function close(
  app: App,
  { job, signal, replay, began }: Closing,
  { ending, steps, used, connection, usage, verdict }: Replayed,
): Promise<void> {
  const told = (await isKeyRevoked(app.db, replay)) ? { state: "failed" as const, ...KEY_REVOKED } : ending;
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    const done = told.state === "done";
    const columns = {
      ...usage,
      state: told.state === "limited" ? ("failed" as const) : told.state,
      steps: JSON.stringify(told === ending ? toSteps(steps) : []),
      contexts: JSON.stringify(used),
      model: done ? told.model : (connection?.model ?? null),
      ...(done ? { result: told.result, ...verdict } : { reason: told.reason, error: told.error }),
      credits_charged: done ? RUN_CREDITS : 0,
      completed: app.now(),
      duration_ms: began === undefined ? 0 : app.nowMs() - began,
    };
    const { numUpdatedRows } = await unfinished(tx, replay.id).set(columns).executeTakeFirst();
    if (numUpdatedRows === 0n) return;
    await (done ? settleCredit : releaseCredit)(app, tx, replay);
    tellPages(app, tx, replay);
    if (done) afterCommit(tx, () => countTokens(app, told.usage));
  });
}

async function endUnfinished(
  app: App,
  tx: Db,
  id: string,
  { reason, error }: { reason: FailureReason; error: string },
): Promise<void> {
  const [replay] = await replayById(tx, { id });
  if (replay?.state !== "received") return;
  await unfinished(tx, id).set({ state: "failed", reason, error, completed: app.now() }).execute();
  await releaseCredit(app, tx, replay);
  tellPages(app, tx, replay);
}

function unfinished(tx: Db, id: string) {
  return tx.updateTable("replays").where("id", "=", id).where("state", "=", "received");
}

const replayById = prepared((db, key: { id: string }) =>
  db.selectFrom("replays").selectAll().where("id", "=", key.id),
);
