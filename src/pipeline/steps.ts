import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import { excerptOf, redactArguments } from "../trust/shown/redact.ts";

/** The most that a step shows of the name of a tool. */
const MAX_NAME_CHARS = 64;

/** One thing a run did on the way to its result, as the activity shows it. */
export interface Step {
  index: number;
  type: "tool_call" | "context" | "extract" | "warning";
  /** The target that a tool call went to. */
  server?: string;
  name?: string;
  /** The arguments of a tool call, without secrets, at most 2 KB. */
  arguments?: Record<string, unknown>;
  status: "ok" | "error" | "blocked";
  /** What came of a tool call, cut to 1 KB. */
  output: string;
  duration_ms?: number;
}

export type StepDraft = Omit<Step, "index" | "status"> & {
  status?: Step["status"];
  /** What a stranger is told instead of `output`, if that says something of the account; "" for nothing. */
  to_strangers?: string;
};

export function toSteps(drafts: StepDraft[]): Step[] {
  return drafts.map((draft, index) => {
    const { to_strangers: _, ...step } = draft;
    return { index, status: "ok", ...step };
  });
}

/** The name of a tool as a step shows it. */
export function stepName(name: string): string {
  return name.slice(0, MAX_NAME_CHARS);
}

/** The tool that a step is about, with its target. */
export function answererOf({ server = "", name = "" }: Pick<StepDraft, "server" | "name">): string {
  return `${server} ${name}`;
}

/** What every step about a call of a tool says, whatever came of it. */
export function callStep(
  { target, name }: Pick<Tool, "target" | "name">,
  args: Record<string, unknown>,
): Omit<StepDraft, "output"> {
  return { type: "tool_call", server: target, name: stepName(name), arguments: redactArguments(args) };
}

/** The step about a call that was made. */
export function doneStep(
  tool: Pick<Tool, "target" | "name">,
  args: Record<string, unknown>,
  { ok, text }: Pick<ToolOutcome, "ok" | "text">,
): StepDraft {
  return { ...callStep(tool, args), status: ok ? "ok" : "error", output: excerptOf(text) };
}

/** A step that the sender is told as well. */
export function warningStep(output: string): StepDraft {
  return { type: "warning", output };
}

/** The sentences of a run that its answer repeats: its warnings, and which files were not read. */
export function sentencesToRepeat(drafts: StepDraft[], { stranger }: { stranger: boolean }): string[] {
  return drafts
    .filter(({ type, status }) => type === "warning" || (type === "extract" && status === "error"))
    .map(({ output, to_strangers }) => (stranger ? (to_strangers ?? output) : output))
    .filter((sentence) => sentence !== "");
}

/** What the model is told of the outcome of a call. */
export function textForModel({ ok, text }: Pick<ToolOutcome, "ok" | "text">): string {
  return ok ? text : `The call failed: ${text}`;
}
