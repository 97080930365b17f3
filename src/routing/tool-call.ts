import type { AskedCall, Objection } from "../ai/guard.ts";
import type { ToolCall } from "../ai/llm-messages.ts";
import { objectionToTitle } from "../ai/titles.ts";
import type { Tool, ToolOutcome } from "../ai/tool.ts";
import type { App } from "../app.ts";
import { checkBy } from "../lib/json-schema.ts";
import { hasMoreParts, isNestedDeeper } from "../lib/json-depth.ts";
import type { Run } from "./close.ts";
import { noteLack } from "./lacking.ts";
import { keepMade } from "./made-files.ts";
import { excerptOf, redactArguments } from "./redact.ts";
import { type StepDraft, warning } from "./steps.ts";
import { fileOf } from "./text-work.ts";
import type { OfferedTool } from "./toolbox.ts";
import { beginCall, endCall, fingerprintOf } from "./tool-journal.ts";
import type { Talk } from "./tool-loop.ts";

const MAX_NAME_CHARS = 64;
const MAX_ARGUMENT_DEPTH = 100;
/** The text of a file, with the escapes of JSON. */
const MAX_ARGUMENT_CHARS = 2_200_000;
/** Each of them is looked at by every part of the schema. */
const MAX_ARGUMENT_PARTS = 10_000;

/** A call that was asked for: what came of it, for the model and for the activity. */
export interface MadeCall {
  /** Untrusted. */
  text: string;
  /** Whether the text is what the tool said; else it is ours. */
  said: boolean;
  step: StepDraft;
}

export interface AskedFor {
  call: ToolCall;
  /** Undefined if there is no such tool. */
  offered: OfferedTool | undefined;
  tainted: boolean;
  /** As the guard is told. */
  beside: string | null;
  /** How often each call was made in this run. */
  calls: Map<string, number>;
}

/** Makes a call if it fits its schema and the guard has nothing against it. */
export async function makeCall(app: App, run: Run, talk: Talk, asked: AskedFor): Promise<MadeCall> {
  const { call, offered, tainted, beside } = asked;
  if (offered === undefined) return refused(`There is no tool called ${call.name.slice(0, MAX_NAME_CHARS)}.`);
  const { tool } = offered;
  const args = argumentsOf(call);
  if (args === null) return refused("The arguments are no JSON object.", tool);
  const fault = (await checkBy(tool.parameters))(args);
  if (fault !== null) return refused(`The arguments do not fit: ${fault}.`, tool, args);
  const { powers, places, own_domains } = talk;
  const { trusted_text } = run.trust;
  const asking = { tool, args, powers, tainted, beside, trusted_text, places, own_domains };
  const objection = await objectionTo(app, asking, talk.signal);
  if (objection !== null) return blocked(run, { ...objection, tainted, beside }, tool, args);
  const started = performance.now();
  const outcome = await outcomeOf(app, run, talk, { tool, args, calls: asked.calls });
  if (!tool.foreign) talk.places.push(...(outcome.places ?? []));
  const left_out = await keepMade(run.made, outcome.files, (file, trust) => fileOf(app, file, trust));
  run.steps.push(...left_out.map(warning));
  const step: StepDraft = {
    ...doneStep(tool, args, outcome),
    duration_ms: Math.round(performance.now() - started),
  };
  return { text: outcome.ok ? outcome.text : `The call failed: ${outcome.text}`, said: true, step };
}

/** Where only the place stands in the way, whether its title is the only one decides what is said of it. */
async function objectionTo(app: App, asked: AskedCall, signal: AbortSignal): Promise<Objection | null> {
  const objection = app.guard.objectionTo(asked);
  if (objection !== null && (objection.lacks === null || objection.lacks.place === null)) return objection;
  try {
    return (await objectionToTitle(asked, signal)) ?? objection;
  } catch (error) {
    if (!signal.aborted) throw error;
    return objection;
  }
}

interface Making {
  tool: Tool;
  args: Record<string, unknown>;
  calls: AskedFor["calls"];
}

/** A run that is ended in the middle of a call still tells of it. */
async function outcomeOf(app: App, run: Run, { signal }: Talk, making: Making): Promise<ToolOutcome> {
  if (signal.aborted) return NOT_MADE;
  const { tool, args } = making;
  try {
    return await (tool.read_only ? tool.call(args, signal) : write(app, run, signal, making));
  } catch (error) {
    if (!signal.aborted) throw error;
    return NOT_ANSWERED;
  }
}

const NOT_MADE: ToolOutcome = { ok: false, text: "Not called: the run was ended before.", files: [] };
const NOT_ANSWERED: ToolOutcome = {
  ok: false,
  text: "The run was ended before an answer came, so it may or may not have been done.",
  files: [],
};

/** What changes something is written down first and never made twice. */
async function write(
  app: App,
  run: Run,
  signal: AbortSignal,
  { tool, args, calls }: Making,
): Promise<ToolOutcome> {
  const first = fingerprintOf(tool, args, 0);
  const nth = calls.get(first) ?? 0;
  calls.set(first, nth + 1);
  const fingerprint = nth === 0 ? first : fingerprintOf(tool, args, nth);
  run.journal.asked.add(fingerprint);
  const entry = { message_id: run.message.id, fingerprint };
  const known = await beginCall(app, entry);
  if (known !== null) {
    run.steps.push(
      ...(known.files ?? []).map((name) => warning(`${name} was made in an earlier try, and lost.`)),
    );
    return { ...known, files: [] };
  }
  const outcome = await tool.call(args, signal);
  await endCall(app, entry, { ...outcome, step: doneStep(tool, args, outcome) });
  return outcome;
}

function doneStep(tool: Tool, args: Record<string, unknown>, { ok, text }: ToolOutcome): StepDraft {
  return { ...stepOf(tool, args), status: ok ? "ok" : "error", output: excerptOf(text) };
}

const read = new WeakMap<ToolCall, Record<string, unknown> | null>();

/** The arguments of a call, parsed once. Null for what is no JSON object, or too much of one. */
export function argumentsOf(call: ToolCall): Record<string, unknown> | null {
  const known = read.get(call);
  if (known !== undefined) return known;
  const args = parseArguments(call.arguments);
  read.set(call, args);
  return args;
}

function parseArguments(text: string): Record<string, unknown> | null {
  if (text.trim() === "") return {};
  if (text.length > MAX_ARGUMENT_CHARS || isNestedDeeper(text, MAX_ARGUMENT_DEPTH)) return null;
  if (hasMoreParts(text, MAX_ARGUMENT_PARTS)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function refused(sentence: string, tool?: Tool, args: Record<string, unknown> = {}): MadeCall {
  const step = tool === undefined ? { type: "tool_call" as const } : stepOf(tool, args);
  return { text: sentence, said: false, step: { ...step, status: "error", output: excerptOf(sentence) } };
}

function blocked(
  run: Run,
  { reason, lacks, tainted, beside }: Objection & Pick<AskedFor, "tainted" | "beside">,
  tool: Tool,
  args: Record<string, unknown>,
): MadeCall {
  if (lacks !== null) {
    // Where a standing grant stands for the name of the target, nobody has asked for this call.
    const unasked = tainted && lacks.destroy && run.command.target !== tool.target;
    noteLack(run.lacking, tool.target, { ...lacks, target: lacks.target || unasked, beside });
  }
  return {
    text: `Blocked: ${reason}`,
    said: false,
    step: { ...stepOf(tool, args), status: "blocked", output: excerptOf(reason) },
  };
}

function stepOf({ target, name }: Tool, args: Record<string, unknown>): Omit<StepDraft, "output"> {
  return {
    type: "tool_call",
    server: target,
    name: name.slice(0, MAX_NAME_CHARS),
    arguments: redactArguments(args),
  };
}
