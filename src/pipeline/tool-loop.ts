import { setImmediate } from "node:timers/promises";
import type { Completion } from "../ai/llm.ts";
import type { ChatMessage, ToolCall } from "../ai/llm-messages.ts";
import type { Place, ReadPlace } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import { sumOfUsage, type Usage } from "../resources/messages/rules-found.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Run } from "./close.ts";
import type { GivenIds } from "../trust/guard/given-ids.ts";
import { FILES_TARGET, type Going, type Powers } from "../trust/guard/guard.ts";
import type { Answered } from "../trust/shown/changed-fields.ts";
import type { Told } from "../trust/guard/told-beside.ts";
import type { Writing } from "../trust/guard/unfurled.ts";
import type { OfferedTool } from "./toolbox.ts";
import type { NamedInVain } from "./read-instruction.ts";
import { argumentsOf } from "./call-arguments.ts";
import { type AskedFor, makeCall, type MadeCall } from "./tool-call.ts";
import { answererOf, warningStep } from "./steps.ts";
import { type Said, workOnText } from "./text-work.ts";
import type { WritingRoom } from "./written-texts.ts";

/** Calls of one round, and of a whole run; a model that wants more has lost its way. */
const MAX_CALLS_AT_ONCE = 16;
const MAX_CALLS = 64;
/** The longest name of a tool that the chat interface takes. */
const MAX_NAME_CHARS = 64;
/** How much of one result, and of all results of a run, the model is shown. */
const MAX_RESULT_CHARS = 50_000;
const MAX_ALL_RESULTS_CHARS = 400_000;

export interface Talk {
  messages: ChatMessage[];
  tools: OfferedTool[];
  powers: Powers;
  nonce: string;
  heard: Heard;
  /** Places that our own tools have found or made; grows during the run. */
  places: Place[];
  /** Places that our own tools have read; grows during the run. */
  read_at: ReadPlace[];
  /** By the target of a tool server, what its results have named; grows during the run. */
  given: Map<string, GivenIds>;
  /** By the target of a tool server, what its calls were answered, the newest last; grows during the run. */
  answers: Map<string, Answered[]>;
  /** Asks the model once; with `tools: false` it has to answer in words. */
  ask: (messages: ChatMessage[], may: { tools: boolean }) => Promise<Completion>;
  /** As the guard is told (see `Going`). */
  instruction: string;
  said: string;
  /** The words that are surely those of the message's author. */
  own: string;
  /** How much tools may still be given to write; shrinks. */
  writing: WritingRoom;
  shared: Going["shared"];
  /** Grows during the run. */
  told: Told[];
  /** What those calls told that came after the answer of another tool; grows. */
  since: Told[];
  /** The tools that have answered, as steps name them; grows. */
  answered: Set<string>;
  /** Grows during the run. */
  written: Writing[][];
  /** The targets in which calls of this run may have changed something by others' words; grows. */
  shaped: Set<string>;
  /**
   * What the run has read of others' words, without what the model may have had a tool say: an address in that may be the
   * model's own. Grows.
   */
  vouched: string;
  /** The call that is being judged: what it may tell counts for the next one. */
  judged: Promise<unknown>;
  orders: string[];
  own_domains: string[];
  calling_code: string | null;
  subject_alone: boolean;
  /** By tool, the last round in which a call that was to change something failed, and what it said; grows. */
  failed: Map<string, { round: number; sentence: string }>;
  in_vain: NamedInVain | null;
  signal: AbortSignal;
}

/** What the model has been told by others, who may steer it. */
interface Heard {
  /** Whether any of it came from a mail, a file, an earlier turn or a tool that was called. */
  read: boolean;
  /** Whether anybody could have written some of what was read. */
  anybodys: boolean;
  /** Tool servers whose descriptions of their tools the model has been shown. */
  servers: Set<string>;
}

/** Asks the model until it calls no more tools, and makes those of its calls that may be made. */
export async function converse(app: App, run: Run, talk: Talk): Promise<Completion> {
  const messages = [...talk.messages];
  const tally: Tally = {
    rounds: 0,
    count: 0,
    room: MAX_ALL_RESULTS_CHARS,
    made_up: [],
    asked: "",
  };
  let usage: Usage | null = null;
  let said: (Completion & { ok: true }) | null = null;
  for (;;) {
    const tools =
      talk.tools.length > 0 && tally.rounds < app.config.routing.max_tool_rounds && tally.count < MAX_CALLS;
    const answer = await talk.ask(messages, { tools });
    // Some models write their answer beside the last calls, and then add nothing: that answer counts.
    if (!answer.ok) return answer.empty === true && said !== null ? { ...said, usage } : answer;
    usage = sumOfUsage(usage, answer.usage);
    if (!tools || answer.tool_calls.length === 0) return ended(run, { ...answer, usage }, talk);
    tally.rounds += 1;
    if (answer.text.trim() !== "") said = answer;
    const calls = answer.tool_calls;
    const made = await makeCalls(app, run, talk, { calls, tally });
    if (talk.signal.aborted) return outOfTime(app);
    messages.push({ role: "assistant", content: answer.text, tool_calls: calls.map(asSendable) });
    messages.push(...(await resultMessages(app, run, talk, { calls, made, tally })));
  }
}

/** How far a run has come. */
interface Tally {
  rounds: number;
  count: number;
  /** Characters of results that the model may still be shown. */
  room: number;
  /**
   * Addresses in the arguments of calls so far: an address that the model made up does not become known by coming back
   * in a result. Null once these are not known any more.
   */
  made_up: string[] | null;
  /** The arguments of all calls so far. */
  asked: string;
}

function outOfTime(app: App): Completion {
  const message = `The run was ended before its tools had answered: it may take ${app.config.routing.hard_cap_seconds} s in all. Its steps say what was done until then; ask for less at once.`;
  return { ok: false, code: "timeout", message, retryable: false, retry_after_seconds: null };
}

/**
 * A call as it can be sent to the model again. Many interfaces refuse a talk with a call whose name no tool can have,
 * or whose arguments are no JSON.
 */
function asSendable(call: ToolCall): ToolCall {
  const { name, arguments: args } = call;
  return {
    ...call,
    name: name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME_CHARS) || "unknown",
    arguments: args.trim() !== "" && argumentsOf(call) !== null ? args : "{}",
  };
}

const CUT_OFF =
  "The model stopped at its limit of tokens, so the answer is cut off at its end. Ask for less at once, or allow more with --max-tokens.";

function ended(run: Run, answer: Completion & { ok: true }, { tools, failed }: Talk): Completion {
  // Whether the reader hears of it is not left to the model.
  run.steps.push(...Array.from(failed.values(), ({ sentence }) => warningStep(sentence)));
  if (answer.tool_calls.length > 0 && tools.length > 0)
    run.steps.push(
      warningStep("The work was ended before the model was done: it asked for too many tool calls."),
    );
  if (answer.finish_reason === "length") run.steps.push(warningStep(CUT_OFF));
  if (answer.text.trim() !== "") return answer;
  const message = "The model asked for more and more tool calls and wrote no answer. Ask for less at once.";
  return { ok: false, code: "bad_response", message, retryable: false, retry_after_seconds: null };
}

/**
 * Makes the calls of a round all at once, but those that change something in the order they were asked for. Each call
 * is a step, in the same order.
 */
async function makeCalls(
  app: App,
  run: Run,
  talk: Talk,
  { calls, tally }: { calls: ToolCall[]; tally: Tally },
): Promise<MadeCall[]> {
  let written: Promise<unknown> = Promise.resolve();
  let begun = Promise.resolve();
  const made = await Promise.all(
    calls.map((call, index) => {
      const offered = talk.tools.find(({ offer }) => offer.name === call.name);
      if (index >= MAX_CALLS_AT_ONCE || tally.count >= MAX_CALLS)
        return Promise.resolve(tooMany(call, offered));
      tally.count += 1;
      // What this round reads counts from the next one on: all its calls are judged by what the model had read when it
      // asked.
      const asked = { call, offered, ...steeringOf(talk.heard, offered), round: tally.rounds };
      // Each call gets a turn of the event loop of its own: even short arguments take long to check if they have many
      // parts.
      begun = begun.then(setImmediate);
      if (offered === undefined || offered.tool.read_only)
        return begun.then(() => makeCall(app, run, talk, asked));
      const mine = Promise.all([written, begun]).then(() => makeCall(app, run, talk, asked));
      written = mine.catch(() => undefined);
      return mine;
    }),
  );
  run.steps.push(...made.map(({ step }) => step));
  app.changes.tell(run.message.user_id, run.message.id);
  return made;
}

/**
 * Whether others may be behind a call. A server's descriptions do not count against calls to that server itself,
 * because by them it gains nothing that it does not have.
 */
function steeringOf(
  { read, anybodys, servers }: Heard,
  offered: OfferedTool | undefined,
): Pick<AskedFor, "tainted" | "beside" | "anybodys"> {
  const other = [...servers].find((server) => server !== offered?.tool.target);
  const steered = other !== undefined;
  return { tainted: read || steered, beside: read ? null : (other ?? null), anybodys: anybodys || steered };
}

function tooMany({ name }: ToolCall, offered: OfferedTool | undefined): MadeCall {
  const text = `Not called: at most ${MAX_CALLS_AT_ONCE} calls are made at once, and ${MAX_CALLS} in all.`;
  const server = offered === undefined ? {} : { server: offered.tool.target };
  return {
    text,
    said: false,
    step: {
      type: "tool_call",
      ...server,
      name: offered?.tool.name ?? name.slice(0, MAX_NAME_CHARS),
      status: "error",
      output: text,
    },
  };
}

async function resultMessages(
  app: App,
  run: Run,
  talk: Talk,
  { calls, made, tally }: { calls: ToolCall[]; made: MadeCall[]; tally: Tally },
): Promise<ChatMessage[]> {
  const { nonce } = talk;
  const messages: ChatMessage[] = [];
  const said: Said[] = [];
  const from = sourceOf(run.message);
  for (const [index, { text, known, said: by_tool, vouches = false, step }] of made.entries()) {
    const max_chars = Math.min(MAX_RESULT_CHARS, Math.max(tally.room, 0));
    const fenced = await workOnText(app, "fence", { material: text, nonce, max_chars }, from);
    const shown = fenced?.text ?? "";
    tally.room -= shown.length;
    const failed = step.status !== "ok";
    if (by_tool) {
      said.push({ text: (known ?? shown).slice(0, shown.length), vouches: vouches && !failed, failed });
    }
    messages.push({ role: "tool", tool_call_id: calls[index]?.id ?? "", content: shown || "(empty)" });
  }
  noteHeard(run, talk, made);
  await learn(app, run, talk, { calls, said, tally });
  return messages;
}

function noteHeard({ trust }: Run, { heard, answered }: Talk, made: MadeCall[]): void {
  if (made.some((one) => one.said)) heard.read = true;
  if (made.some((one) => one.anybodys)) heard.anybodys = true;
  for (const { said, step } of made) if (said) answered.add(answererOf(step));
  if (made.some(({ step }) => step.server !== FILES_TARGET)) trust.tainted = true;
}

/**
 * Adds what was shown to the material. Once this cannot be told apart from what the model made up, nothing more is
 * added.
 */
async function learn(
  app: App,
  { trust, message }: Run,
  talk: Talk,
  { calls, said, tally }: { calls: ToolCall[]; said: Said[]; tally: Tally },
): Promise<void> {
  if (tally.made_up === null) return;
  const args = calls.map((call) => call.arguments);
  const round = { trust, args, said, made_up: tally.made_up, asked_before: tally.asked };
  tally.asked += args.join(" ");
  const learnt = await workOnText(app, "learn", round, sourceOf(message));
  tally.made_up = learnt?.made_up ?? null;
  trust.material += learnt?.material ?? "";
  talk.vouched += learnt?.vouched ?? "";
}
