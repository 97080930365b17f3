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
  /** `length` means that the text was cut off. */
  finish_reason: string;
}

/** Reads the body of a chat completion, in whatever variety of that format a server writes it. */
export function readAnswer(
  answer: unknown,
  connection: ModelConnection,
): CompletionSuccess | CompletionFailure {
  const body = asRecord(answer);
  if (body["error"] !== undefined && body["error"] !== null) {
    return embeddedError(body["error"], connection);
  }
  const choice = asRecord(Array.isArray(body["choices"]) ? body["choices"][0] : undefined);
  if (typeof choice["message"] !== "object" || choice["message"] === null) {
    return unreadable(connection, "answered without a message");
  }
  const message = asRecord(choice["message"]);
  const finish_reason = typeof choice["finish_reason"] === "string" ? choice["finish_reason"] : "stop";
  const text = textOf(message["content"]);
  const tool_calls = callsOf(message["tool_calls"]);
  if (haveManyParts(tool_calls)) return tooMuch(connection, `${MANY_PARTS} in its calls`);
  if (finish_reason === "content_filter" || (text.trim() === "" && tool_calls.length === 0)) {
    return noText(connection, finish_reason, message["refusal"]);
  }
  const model = typeof body["model"] === "string" ? body["model"] : endpointOf(connection).model;
  return { ok: true, text, tool_calls, model, usage: usageOf(body["usage"]), finish_reason };
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
