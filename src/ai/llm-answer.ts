import { quote } from "../lib/quote.ts";
import { MAX_PARTS, partsIn } from "../lib/json-depth.ts";
import { type CompletionFailure, failure, refusalFailure, tooMuch, unreadable } from "./llm-faults.ts";
import { type ChatMessage, plainId, type ToolCall } from "./llm-messages.ts";
import type { Bill } from "./prices.ts";
import { endpointOf, type ModelConnection } from "./providers.ts";
import { withoutThinking } from "./thinking.ts";

/** Limit of tool calls in one answer; a model with more is out of control. */
const MAX_CALLS = 100;
/** The highest price of one answer that is believed. */
const MAX_COST = 1_000_000;
const MANY_PARTS = `more than ${MAX_PARTS.toLocaleString("en")} parts`;

export interface CompletionSuccess {
  ok: true;
  /** The text of the answer; empty only with tool calls. */
  text: string;
  tool_calls: ToolCall[];
  /** The model's name as the provider gives it. */
  model: string;
  usage: Bill | null;
  /** The provider's reason for the end of a complete answer, or `length` if it was cut off. */
  finish_reason: string;
}

interface Sent {
  connection: ModelConnection;
  messages: ChatMessage[];
}

/** Parses the body of a chat completion, in any variant of that format, to the messages that the model was sent. */
export function readAnswer(answer: unknown, sent: Sent): CompletionSuccess | CompletionFailure {
  const read = readWhole(answer, sent);
  if (read.ok) return read;
  // An answer of no use has its price all the same.
  const usage = usageOf(asRecord(answer)["usage"]);
  return usage === null ? read : { ...read, usage };
}

function readWhole(answer: unknown, { connection, messages }: Sent): CompletionSuccess | CompletionFailure {
  const body = asRecord(answer);
  const choice = firstOf(body["choices"]);
  // The part of the answer before a fault may accompany the error.
  const error = body["error"] ?? choice["error"] ?? null;
  if (error !== null) return embeddedError(error, connection);
  if (typeof choice["message"] !== "object" || choice["message"] === null) {
    return unreadable(connection, "answered without a message");
  }
  const message = asRecord(choice["message"]);
  const finish_reason = endOf(choice["finish_reason"]);
  if (typeof finish_reason !== "string") return brokenOff(connection, finish_reason.unknown);
  const text = withoutThinking(textOf(message["content"]), messages);
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

/** Finish reasons of an answer that the model completed, or ended with its tool calls. */
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
/** Finish reasons of filtered answers; gateways append or substitute the model's own. */
const FILTERED = /^(?:content_filter|safety|recitation|refusal|blocklist|prohibited_content|spii)\b/;

/**
 * Returns how an answer ended. An unknown reason counts as broken off: half an answer must not be sent as a complete
 * one, and no half call be made.
 */
function endOf(said: unknown): string | { unknown: string } {
  if (typeof said !== "string") return "stop";
  const reason = said.toLowerCase();
  if (CUT.has(reason)) return "length";
  if (FILTERED.test(reason)) return "content_filter";
  return WHOLE.has(reason) ? said : { unknown: said };
}

function brokenOff(connection: ModelConnection, said: string): CompletionFailure {
  const what = `broke off in the middle of its answer (for the reason "${quote(said.slice(0, 100), [])}"), so that none of it was used. Try again, or use another model.`;
  return failure(connection, "bad_response", what, { retryable: true });
}

/** Returns the failure in the body of a 200: some gateways put the real status there. */
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
    return failure(connection, "bad_response", what, { of_request: true });
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
  // Some servers send a list of parts, with their reasoning as another type.
  const parts: unknown[] = Array.isArray(content) ? content : [];
  return parts
    .map((part) => asRecord(part)["text"])
    .filter((text) => typeof text === "string")
    .join("");
}

/** Parses tool calls. Some servers omit ids, repeat one, or send the arguments as an object instead of a string. */
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
 * Returns whether the arguments of all calls together have too many parts. They are JSON within strings, which the
 * limit on the answer itself does not count.
 */
function haveManyParts(calls: ToolCall[]): boolean {
  let left = MAX_PARTS;
  return calls.some((call) => {
    left -= partsIn(call.arguments, left);
    return left < 0;
  });
}

function usageOf(usage: unknown): Bill | null {
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens, ...more } = asRecord(usage);
  if (!isCount(input_tokens) || !isCount(output_tokens)) return null;
  const { cached_tokens } = asRecord(more["prompt_tokens_details"]);
  const said_cost = costIn(more);
  return {
    input_tokens,
    output_tokens,
    ...(isCount(cached_tokens) && cached_tokens > 0 ? { cached_tokens } : {}),
    ...(said_cost === undefined ? {} : { said_cost }),
  };
}

/** With a key of the account's own for the provider behind it, OpenRouter's figure is its fee alone. */
function costIn({ cost, is_byok, cost_details }: Record<string, unknown>): number | undefined {
  if (!isMoney(cost)) return undefined;
  const { upstream_inference_cost } = asRecord(cost_details);
  return is_byok === true && isMoney(upstream_inference_cost) ? cost + upstream_inference_cost : cost;
}

/** What somebody says that is more than an answer can cost is no price. */
function isMoney(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_COST;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
