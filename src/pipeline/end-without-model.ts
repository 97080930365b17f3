import type { App } from "../app.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import type { Understanding } from "./read-instruction.ts";
import { schedule } from "./schedule.ts";

/** Ends a run that needs no model, as it is about times, or a digest of nothing; false for any other run. */
export async function endWithoutModel(app: App, run: Run, asked: Understanding): Promise<boolean> {
  const scheduled = await schedule(app, run, asked);
  if (scheduled) await closeRun(app, { ...run, ...toBeKept(run), ...scheduled }, scheduled.ending);
  else if (run.input.gathered?.count === 0)
    await closeRun(app, { ...run, settings: { ...run.settings, reply: false } }, NOTHING_CAME);
  else return false;
  return true;
}

/** The order of a schedule is kept until it is over, also where the answers of its runs are private. */
function toBeKept({ command, settings }: Run): Pick<Run, "command" | "settings"> {
  const { private: _, ...options } = command.options;
  return { command: { ...command, options }, settings: { ...settings, private: false } };
}

/** Nothing is mailed: who has a digest every hour does not want to hear of each hour without mail. */
const NOTHING_CAME: Ending = {
  state: "done",
  result: "Nothing came in since the last run, so there was nothing to do.",
  model: null,
  usage: null,
  free: true,
};
