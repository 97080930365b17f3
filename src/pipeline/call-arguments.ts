import type { ToolCall } from "../ai/llm-messages.ts";
import { hasMoreParts, isNestedDeeper } from "../lib/json-depth.ts";

const MAX_ARGUMENT_DEPTH = 100;
/** Characters of a call's arguments: enough for the text of a file with the escapes of JSON. */
const MAX_ARGUMENT_CHARS = 2_200_000;
/** Members and elements of a call's arguments: each is looked at by every part of the schema. */
const MAX_ARGUMENT_PARTS = 10_000;

const read = new WeakMap<ToolCall, Record<string, unknown> | null>();

/** The arguments of a call, parsed once. Null if they are no JSON object, or too large. */
export function argumentsOf(call: ToolCall): Record<string, unknown> | null {
  const known = read.get(call);
  if (known !== undefined) return known;
  const args = parseArguments(call.arguments);
  read.set(call, args);
  return args;
}

function parseArguments(text: string): Record<string, unknown> | null {
  if (text.trim() === "") return {};
  // The count of parts comes first: it ends early, and a text that passes it has few levels to check.
  if (text.length > MAX_ARGUMENT_CHARS || hasMoreParts(text, MAX_ARGUMENT_PARTS)) return null;
  if (isNestedDeeper(text, MAX_ARGUMENT_DEPTH)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
