import { quote } from "../lib/quote.ts";
import { MAX_PARTS, partsIn } from "../lib/json-depth.ts";
import { type CompletionFailure, failure, refusalFailure, tooMuch, unreadable } from "./llm-faults.ts";
import { plainId, type ToolCall } from "./llm-messages.ts";
import { endpointOf, type ModelConnection } from "./providers.ts";

/** Tool calls in one answer; a model that asks for more has gone astray. */
const MAX_CALLS = 100;
const MANY_PARTS = `more than ${MAX_PARTS.toLocaleString("en")} parts`;

export interface CompletionSuccess {
  ok: true;
  /** The text of the answer, which may be empty only beside calls. */
  text: string;
  tool_calls: ToolCall[];
  /** The model's name as the provider gives it. */
  model: string;
  usage: { input_tokens: number; output_tokens: number } | null;
  /** What the provider calls the end of a whole answer, or `length`, which means that the text was cut off. */
  finish_reason: string;
}

/** Reads the body of a chat completion, in whatever variety of that format a server writes it. */
export function readAnswer(
  answer: unknown,
  connection: ModelConnection,
): CompletionSuccess | CompletionFailure {
  const body = asRecord(answer);
  const choice = firstOf(body["choices"]);
  // What there was of the answer before the fault may stand beside it.
  const error = body["error"] ?? choice["error"] ?? null;
  if (error !== null) return embeddedError(error, connection);
  if (typeof choice["message"] !== "object" || choice["message"] === null) {
    return unreadable(connection, "answered without a message");
  }
  const message = asRecord(choice["message"]);
  const finish_reason = endOf(choice["finish_reason"]);
  if (typeof finish_reason !== "string") return brokenOff(connection, finish_reason.unknown);
  const text = textOf(message["content"]);
  const tool_calls = callsOf(message["tool_calls"]);
  if (haveManyParts(tool_calls)) return tooMuch(connection, `${MANY_PARTS} in its calls`);
  if (finish_reason === "content_filter" || (text.trim() === "" && tool_calls.length === 0)) {
    return noText(connection, finish_reason, message["refusal"]);
  }
  const model = typeof body["model"] === "string" ? body["model"] : endpointOf(connection).model;
  return { ok: true, text, tool_calls, model, usage: usageOf(body["usage"]), finish_reason };
}

function firstOf(choices: unknown): Record<string, unknown> {
  return asRecord(Array.isArray(choices) ? choices[0] : undefined);
}

/** The words that servers have for the end of an answer which the model ended by itself, or with its calls. */
const WHOLE = new Set([
  "",
  "stop",
  "tool_calls",
  "function_call",
  "tool_use",
  "end_turn",
  "stop_sequence",
  "eos",
  "eos_token",
  "complete",
  "completed",
  "end",
  "done",
  "finished",
  "unknown",
  "null",
]);
const CUT = new Set(["length", "max_tokens", "max_output_tokens", "model_length"]);
/** Gateways put the reason of the model's own interface behind it, or in its place. */
const FILTERED = /^(?:content_filter|safety|recitation|refusal|blocklist|prohibited_content|spii)\b/;

/**
 * How an answer ended. Its server may say that it broke off, and a word that nobody knows counts as that: half an answer
 * must not go out as a whole one, and no half call be made.
 */
function endOf(said: unknown): string | { unknown: string } {
  if (typeof said !== "string") return "stop";
  const reason = said.toLowerCase();
  if (CUT.has(reason)) return "length";
  if (FILTERED.test(reason)) return "content_filter";
  return WHOLE.has(reason) ? said : { unknown: said };
}

function brokenOff(connection: ModelConnection, said: string): CompletionFailure {
  const what = `broke off in the middle of its answer (finish_reason "${quote(said.slice(0, 100), [])}"), so that none of it was used. Try again, or use another model.`;
  return failure(connection, "bad_response", what, { retryable: true });
}

/** Some gateways answer 200 and put the real status into the body. */
function embeddedError(error: unknown, connection: ModelConnection): CompletionFailure {
  const code = asRecord(error)["code"];
  const status = typeof code === "number" && code >= 400 && code < 600 ? code : 502;
  return refusalFailure(connection, { status, headers: new Headers() }, JSON.stringify({ error }));
}

function noText(connection: ModelConnection, finishReason: string, refusal: unknown): CompletionFailure {
  if (finishReason === "content_filter" || typeof refusal === "string") {
    const said = typeof refusal === "string" ? refusal : undefined;
    const what = "refused to write about this. Change the instruction, or use another model.";
    return failure(connection, "content_filtered", what, said === undefined ? {} : { said });
  }
  if (finishReason === "length") {
    const what = "used up its tokens before it wrote any text. Raise --max-tokens, or use another model.";
    return failure(connection, "bad_response", what);
  }
  const what = "answered without any text. Try again, or use another model.";
  return {
    ...failure(connection, "bad_response", what, { retryable: true }),
    empty: true,
  };
}

function textOf(content: unknown): string {
  if (typeof content === "string") {
    return content;
  }
  // Some servers send a list of parts, with their reasoning as parts of another type.
  const parts: unknown[] = Array.isArray(content) ? content : [];
  return parts
    .map((part) => asRecord(part)["text"])
    .filter((text) => typeof text === "string")
    .join("");
}

/**
 * Reads the calls of tools. Some servers give no ids, or the same one to all, or the arguments as an object instead of
 * as its text.
 */
function callsOf(calls: unknown): ToolCall[] {
  const list: unknown[] = Array.isArray(calls) ? calls.slice(0, MAX_CALLS) : [];
  const given = new Set(list.map((call) => asRecord(call)["id"]));
  const taken = new Set<string>();
  return list.flatMap((call, index) => {
    const { name, arguments: args = "{}" } = asRecord(asRecord(call)["function"]);
    const { id, extra_content } = asRecord(call);
    if (typeof name !== "string") return [];
    let own = typeof id === "string" && id !== "" && !taken.has(id) ? id : plainId(index);
    for (let nth = index + 1; taken.has(own) || (own !== id && given.has(own)); nth += 1) own = plainId(nth);
    taken.add(own);
    const made: ToolCall = {
      id: own,
      name,
      arguments: typeof args === "string" ? args : JSON.stringify(args),
    };
    if (typeof extra_content === "object" && extra_content !== null) made.extra_content = extra_content;
    return made;
  });
}

/**
 * Whether the arguments of all calls together have too many parts. They are JSON within strings, which the limit on the
 * answer itself does not see.
 */
function haveManyParts(calls: ToolCall[]): boolean {
  let left = MAX_PARTS;
  return calls.some((call) => {
    left -= partsIn(call.arguments, left);
    return left < 0;
  });
}

function usageOf(usage: unknown): CompletionSuccess["usage"] {
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = asRecord(usage);
  return isCount(input_tokens) && isCount(output_tokens) ? { input_tokens, output_tokens } : null;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
