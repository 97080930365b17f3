import type { App } from "../app.ts";
import { answerRequest } from "./answer-request.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import type { Gathered } from "./digest.ts";
import type { Understanding } from "./read-instruction.ts";
import type { StepDraft } from "./steps.ts";
import { schedule } from "./schedule.ts";

/** Ends a run that needs no model, as it answers a request for consent, is about times, or a digest of nothing; false for any other run. */
export async function endWithoutModel(app: App, run: Run, asked: Understanding): Promise<boolean> {
  if (await answerRequest(app, run)) return true;
  const scheduled = await schedule(app, run, asked);
  const told = withoutContexts(run);
  if (scheduled) await closeRun(app, { ...told, ...toBeKept(run), ...scheduled }, scheduled.ending);
  else if (run.input.gathered?.count === 0) await endWithoutMail(app, told, run.input.gathered);
  else return false;
  return true;
}

/** A run without what its steps say of contexts, since no model was given them. */
function withoutContexts(run: Run): Run {
  const isGiven = ({ type, name }: StepDraft) =>
    type === "context" && (name === "context" || name === "context_truncated");
  return { ...run, steps: run.steps.filter((step) => !isGiven(step)) };
}

/** The order of a schedule is kept until it is over, also where the answers of its runs are private. */
function toBeKept({ command, settings }: Run): Pick<Run, "command" | "settings"> {
  const { private: _, ...options } = command.options;
  return { command: { ...command, options }, settings: { ...settings, private: false } };
}

/** Nothing is mailed where nothing came in: who has a digest every hour does not want to hear of each hour without mail. */
function endWithoutMail(app: App, run: Run, { why_empty, refused }: Gathered): Promise<void> {
  if (refused) return closeRun(app, run, { state: "failed", reason: "schedule_refused", error: why_empty });
  const ending: Ending = { state: "done", result: why_empty, model: null, usage: null, free: true };
  return closeRun(app, { ...run, settings: { ...run.settings, reply: false } }, ending);
}
