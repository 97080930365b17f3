import { type AskedCall, FILES_TARGET, type Objection } from "../trust/guard/guard.ts";
import { noGivenIds } from "../trust/guard/given-ids.ts";
import type { ToolCall } from "../ai/llm-messages.ts";
import type { Judgement } from "../trust/guard/tells.ts";
import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { checkBy } from "../lib/json-schema.ts";
import { refuseWithoutHandles } from "../lib/own-faults.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Run } from "./close.ts";
import { argumentsOf } from "./call-arguments.ts";
import { countCall, nextCall } from "./earlier-calls.ts";
import { holdCall, isLiftable, isUnshown, whyStop } from "./hold-call.ts";
import { notePlaces } from "./known-places.ts";
import { noteLack } from "./lacking.ts";
import { keepMade } from "./made-files.ts";
import { judgeCall } from "./objection.ts";
import { excerptOf } from "../trust/shown/redact.ts";
import {
  answererOf,
  callStep,
  doneStep,
  type StepDraft,
  stepName,
  warningStep,
  textForModel,
} from "./steps.ts";
import { noteAnswer, noteFailure, noteGiven, noteShaped } from "./note-call.ts";
import { makeTextFile } from "./text-work.ts";
import { type OfferedTool, withoutCode } from "./toolbox.ts";
import { isStillGranted } from "./still-granted.ts";
import { beginCall, endCall, UNKNOWN } from "./tool-journal.ts";
import {
  isUnseen,
  NOTHING_TO_NOTE,
  noteUnseen,
  toNoteInTalk,
  whoseWriting,
  type WhoseWriting,
} from "./to-note.ts";
import { toldBefore } from "./told-before.ts";
import type { Talk } from "./tool-loop.ts";

/** What came of a call that the model asked for, for the model and for the activity. */
export interface MadeCall {
  /** Untrusted. */
  text: string;
  /** Whether `text` is what the tool said; else it is a sentence of this server's. */
  said: boolean;
  /** The part of `text` whose addresses count as read; without it, all of it. */
  known?: string;
  /** Whether the model had no part in what the tool said. */
  vouches?: boolean;
  /** Whether anybody could have written what the tool said. */
  anybodys?: boolean;
  step: StepDraft;
}

export interface AskedFor {
  call: ToolCall;
  /** Undefined if there is no such tool. */
  offered: OfferedTool | undefined;
  tainted: boolean;
  /** The server beside this call's that may steer it, as the guard is told (see `steeringOf`). */
  beside: string | null;
  anybodys: boolean;
  /** The round of the talk, from 1 on. */
  round: number;
}

/** Makes a call if it fits its schema and the guard has nothing against it. */
export async function makeCall(app: App, run: Run, talk: Talk, asked: AskedFor): Promise<MadeCall> {
  const { call, offered, tainted, beside, anybodys } = asked;
  if (offered === undefined) return refused(`There is no tool called ${stepName(call.name)}.`);
  const { tool } = offered;
  const args = argumentsOf(call);
  if (args === null) return refused("The arguments are no JSON object.", tool);
  const fault = (await checkBy(tool.parameters))(args);
  if (fault !== null) return refused(`The arguments do not fit: ${fault}.`, tool, args);
  // This comes before the guard, because telling of an earlier call makes none.
  const earlier = toldBefore(run, tool, { args, round: asked.round });
  if (earlier !== undefined) return earlier;
  const { trusted_text } = run.trust;
  const whose = await whoseWriting(app, run, { tool, tainted });
  const judged = { tool, args, tainted, beside, anybodys, ...whose };
  const { objection, tells } = await judge(app, run, talk, judged);
  const sent = tainted ? (tool.inert?.(args, trusted_text) ?? args) : args;
  const stopped = await askOrBlock(app, run, talk, { ...judged, objection, sent });
  if (stopped !== null) return stopped;
  const started = performance.now();
  const outcome = notePlaces(talk, {
    tool,
    args,
    outcome: await outcomeOf(app, run, talk, { tool, args, sent, tainted, round: asked.round }),
  });
  noteGiven(talk, tool, outcome);
  noteAnswer(talk, tool, { args: sent, outcome });
  const vouches = noteShaped(talk, tool, { tainted, tells });
  const left_out = await keepMade(run.made, outcome.files, (file, trust) =>
    makeTextFile(app, file, trust, sourceOf(run.message)),
  );
  run.steps.push(...left_out.map(warningStep));
  const duration_ms = Math.round(performance.now() - started);
  const step: StepDraft = { ...doneStep(tool, args, outcome), duration_ms };
  // `create_file` says no more than the model itself has written.
  const said = tool.target !== FILES_TARGET;
  const { known } = outcome;
  const read = known === undefined ? {} : { known };
  return {
    text: textForModel(outcome),
    said,
    ...read,
    vouches,
    anybodys: said && tool.of_circle !== true,
    step,
  };
}

type Judged = Pick<AskedCall, "tool" | "args" | "tainted" | "beside" | "anybodys"> & WhoseWriting;

/** Asks the guard about a call, and where a site could be told something by it, about one after the other: by several it could be told more. */
async function judge(app: App, run: Run, talk: Talk, call: Judged): Promise<Judgement> {
  if (!call.tool.foreign || !call.tainted) return judgeOne(app, run, talk, call);
  const judged = talk.judged.then(async () => {
    const judgement = await judgeOne(app, run, talk, call);
    const { written = [], told = [] } = judgement.tells ?? {};
    if (written.length > 0) talk.written.push(written);
    if (told.length > 0) {
      talk.told.push(told);
      if (hasOtherAnswered(talk, call)) talk.since.push(told);
    }
    return judgement;
  });
  talk.judged = judged.catch(() => undefined);
  return judged;
}

function judgeOne(app: App, run: Run, talk: Talk, call: Judged): Promise<Judgement> {
  return judgeCall(app, askedOf(run, talk, call), { from: sourceOf(run.message), signal: talk.signal });
}

/** Returns what a call comes to that is not made: it is asked about first, or blocked. Null where it is to be made. */
async function askOrBlock(
  app: App,
  run: Run,
  talk: Talk,
  {
    objection: found,
    sent,
    ...call
  }: Judged & { objection: Objection | null; sent: Record<string, unknown> },
): Promise<MadeCall | null> {
  const { tool, args, tainted, beside } = call;
  const why = await whyStop(app, run, { tool, tainted, objection: found });
  if (why === null) return null;
  const { cause, objection } = why;
  const asked = askedOf(run, talk, call);
  const answers = talk.answers.get(tool.target) ?? [];
  const asks = objection === null || isLiftable(objection, tool);
  const held = asks ? await holdCall(app, run, { asked, sent, cause, answers, signal: talk.signal }) : "";
  const waits = typeof held !== "string";
  const unasked = !waits && isUnshown(held) ? ` ${held}` : "";
  const marked = waits ? WAITS : `The owner is asked before ${tool.name} is called. ${held}`;
  const reason = objection === null ? marked : reasonOf(talk, tool, objection) + unasked;
  const made = blocked(run, { reason, lacks: objection?.lacks ?? null, tainted, beside }, tool, args);
  return waits ? { ...made, text: `${made.text} ${NOT_YET}` } : made;
}

/** Why a call is not made; where it lacks a target that the message does name, why that does not count. */
function reasonOf({ in_vain }: Talk, { name, target }: Tool, { lacks, reason }: Objection): string {
  if (lacks?.target !== true || in_vain?.target !== target) return reason;
  return `${name} may change something, and @${target}, with which the message begins, does not count, as ${in_vain.because}.`;
}

const WAITS = "It waits for the owner's yes, and was not made.";
const NOT_YET =
  "The owner of this inbox is asked whether this very call may be made, and has not answered. Nothing was done: say in your answer that it waits for that, do not say that it was done, and do not ask for it again.";

function askedOf(run: Run, talk: Talk, call: Judged): AskedCall {
  const { powers, places, read_at, own_domains, given, calling_code, subject_alone } = talk;
  const { instruction, said, shared, told, written, orders, vouched } = talk;
  const since = hasOtherAnswered(talk, call) ? talk.since : null;
  const { trusted_text } = run.trust;
  const words = { instruction, trusted_text, material: vouched, said, shared, told, since, written, orders };
  return {
    ...call,
    ...words,
    powers,
    places,
    read_at,
    own_domains,
    calling_code,
    subject_alone,
    given: given.get(call.tool.target) ?? noGivenIds(),
  };
}

/** Whether another tool has answered, which may have told the model what no site is to know. */
function hasOtherAnswered({ answered }: Talk, { tool }: Judged): boolean {
  const own = answererOf(callStep(tool, {}));
  return [...answered].some((one) => one !== own);
}

interface Making {
  tool: Tool;
  /** The arguments as they were asked for: a later try recognises the call by them. */
  args: Record<string, unknown>;
  sent: Record<string, unknown>;
  tainted: boolean;
  round: number;
}

/** Makes the call. If the run is ended in the middle of it, there is still an outcome to tell. */
async function outcomeOf(app: App, run: Run, talk: Talk, making: Making): Promise<ToolOutcome> {
  const { signal } = talk;
  if (signal.aborted) return NOT_MADE;
  if (await isKeyRevoked(app.db, run.message)) return KEY_GONE;
  const { tool, sent } = making;
  try {
    return await (tool.read_only
      ? withoutCode(app, run.message, tool.call(sent, signal))
      : write(app, run, talk, making));
  } catch (error) {
    if (!signal.aborted) throw error;
    return NOT_ANSWERED;
  }
}

const NOT_MADE: ToolOutcome = { ok: false, text: "Not called: the run was ended before.", files: [] };
const KEY_GONE: ToolOutcome = {
  ok: false,
  text: "Not called: the API key that asked for it was revoked.",
  files: [],
};
const NOT_ANSWERED: ToolOutcome = {
  ok: false,
  text: "The run was ended before an answer came, so it may or may not have been done.",
  files: [],
};

/** Makes a call that changes something: the call is written down first, and never made twice. */
async function write(
  app: App,
  run: Run,
  talk: Talk,
  { tool, args, sent, tainted, round }: Making,
): Promise<ToolOutcome> {
  const { first, fingerprint } = nextCall(run.journal, tool, args);
  countCall(run.journal, first);
  const entry = { message_id: run.message.id, fingerprint };
  // This comes before the note: a call that was noted and then not made would never be made.
  refuseWithoutHandles();
  const granted = (tx: Db) => isStillGranted(app, tx, run, { tool, tainted });
  // It may come back as a mail in the owner's name.
  const unseen = isUnseen(run, { tool, tainted });
  const noted = unseen ? await toNoteInTalk(app, run, talk, sent) : NOTHING_TO_NOTE;
  if (typeof noted === "string") return { ok: false, text: noted, files: [] };
  const refusal = await beginCall(app, entry, {
    step: doneStep(tool, args, UNKNOWN),
    granted,
    alongside: async (tx) => {
      if (unseen) await noteUnseen(app, tx, run, noted);
    },
  });
  if (refusal !== null) return { ...refusal, files: [] };
  talk.writing.words -= noted.takes.words;
  talk.writing.chars -= noted.takes.chars;
  run.changed = true;
  const said = await withoutCode(app, run.message, tool.call(sent, talk.signal));
  noteFailure(talk, tool, { said, round });
  const outcome = said.unanswered === true ? { ...said, text: `${said.text} ${MAY_BE_DONE}` } : said;
  const step = doneStep(tool, args, outcome);
  await endCall(app, run.signal, entry, { ...outcome, step });
  if (said.of_server === true && said.unanswered !== true)
    run.steps.push(warningStep(`${tool.target} ${stepName(tool.name)} was not done: ${said.text}`));
  run.journal.unanswered.delete(first);
  if (said.unanswered === true) {
    const { ok, text } = outcome;
    run.journal.put_off.delete(first);
    run.journal.unanswered.set(first, { fingerprint, ok, text, step, unknown: true, round });
    run.steps.push(warningStep(`${tool.target} ${stepName(tool.name)}: ${MAY_BE_DONE}`));
  }
  return outcome;
}

const MAY_BE_DONE = "It may or may not have been done: look there before you ask for it again.";

function refused(sentence: string, tool?: Tool, args: Record<string, unknown> = {}): MadeCall {
  const step = tool === undefined ? { type: "tool_call" as const } : callStep(tool, args);
  return { text: sentence, said: false, step: { ...step, status: "error", output: excerptOf(sentence) } };
}

function blocked(
  run: Run,
  { reason, lacks, tainted, beside }: Objection & Pick<AskedFor, "tainted" | "beside">,
  tool: Tool,
  args: Record<string, unknown>,
): MadeCall {
  if (lacks !== null) {
    // Nobody has asked for this call if its target is only granted by the inbox, and not named by the instruction.
    const unasked = tainted && lacks.destroy && run.command.target !== tool.target;
    noteLack(run.lacking, tool.target, { ...lacks, target: lacks.target || unasked, beside });
  }
  return {
    text: `Blocked: ${reason}`,
    said: false,
    step: { ...callStep(tool, args), status: "blocked", output: excerptOf(reason) },
  };
}
