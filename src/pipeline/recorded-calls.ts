import type { Tool } from "../trust/guard/tool.ts";
import { FILES_TARGET } from "../trust/guard/guard.ts";
import { MEMORY_TARGET } from "../trust/target-names.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { storedJson } from "../lib/stored-json.ts";
import type { MessageRow } from "../db/schema.ts";
import { callStep, type Step, type StepDraft, textForModel } from "./steps.ts";
import type { MadeCall } from "./tool-call.ts";

/** What tools said in an earlier run, by call; the answers to equal calls follow each other. */
export type CallRecord = Map<string, Step[]>;

export function recordOf({ steps }: Pick<MessageRow, "steps">): CallRecord {
  const record: CallRecord = new Map();
  for (const step of storedJson<Step[]>(steps, [])) {
    if (step.type !== "tool_call") continue;
    const key = keyOf(step);
    record.set(key, [...(record.get(key) ?? []), step]);
  }
  return record;
}

/**
 * Answers a call from the record, as a replay calls no tool. Undefined for our own tool that makes a file, which reaches nothing
 * outside the run.
 */
export function recordedCall(
  record: CallRecord,
  tool: Tool,
  args: Record<string, unknown>,
): MadeCall | undefined {
  if (tool.target === FILES_TARGET) return undefined;
  const step = callStep(tool, args);
  const answers = record.get(keyOf(step)) ?? [];
  // The last answer stands for whatever is asked more often than before.
  const known = answers.length > 1 ? answers.shift() : answers[0];
  if (known === undefined)
    return { text: UNKNOWN, said: false, step: { ...step, status: "blocked", output: UNKNOWN } };
  const { output, status } = known;
  const cut = output.endsWith(CUT_MARK) ? ` ${CUT}` : "";
  return {
    text: textForModel({ ok: status !== "error", text: `${output}${cut}` }),
    said: status !== "blocked",
    // The record does not say which part of it a model has written.
    ...(tool.target === MEMORY_TARGET ? { known: "" } : {}),
    step: { ...step, status, output },
  };
}

const CUT_MARK = "…";
const CUT = "(Only this beginning of what the tool said is on record.)";
const UNKNOWN =
  "Not called: this is a replay, which calls no tools, and the run before did not make this call. Go on without it, and say in the answer what is missing.";

function keyOf({
  server = "",
  name = "",
  arguments: args = {},
}: Pick<StepDraft, "server" | "name" | "arguments">) {
  return JSON.stringify([server, name]) + canonicalJson(args);
}
