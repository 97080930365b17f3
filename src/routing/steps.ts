/** One thing a run did on the way to its result, as the activity shows it. */
export interface Step {
  index: number;
  type: "tool_call" | "context" | "extract" | "warning";
  /** Of a tool call: the target it went to. */
  server?: string;
  name?: string;
  /** Of a tool call: without secrets, at most 2 KB. */
  arguments?: Record<string, unknown>;
  status: "ok" | "error" | "blocked";
  /** At most 1 KB of what came of a tool call. */
  output: string;
  duration_ms?: number;
}

export type StepDraft = Omit<Step, "index" | "status"> & { status?: Step["status"] };

export function toSteps(drafts: StepDraft[]): Step[] {
  return drafts.map((draft, index) => ({ index, status: "ok", ...draft }));
}

/** Something that the sender is told as well. */
export function warning(output: string): StepDraft {
  return { type: "warning", output };
}

/** Whether the answer says it, too: warnings, and files that were not read. */
export function isTold({ type, status }: StepDraft): boolean {
  return type === "warning" || (type === "extract" && status === "error");
}
