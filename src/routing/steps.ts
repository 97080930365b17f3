/** One thing a run did on the way to its result, as the activity shows it. */
export interface Step {
  index: number;
  type: "tool_call" | "context" | "extract" | "warning";
  name?: string;
  status: "ok" | "error" | "blocked";
  output: string;
}

export type StepDraft = Pick<Step, "type" | "name" | "output">;

export function toSteps(drafts: StepDraft[]): Step[] {
  return drafts.map((draft, index) => ({ index, status: "ok", ...draft }));
}
