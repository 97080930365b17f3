import type { App } from "../app.ts";
import type { ReplayRow } from "../db/schema.ts";
import { differenceFrom } from "../resources/test-runs/expected.ts";
import { expectedOf } from "../resources/test-runs/stars.ts";
import type { Ending, Run } from "./close.ts";
import { withoutFence } from "./form.ts";

export type Verdict = Pick<ReplayRow, "passed" | "differs">;

const NONE: Verdict = { passed: null, differs: null };

/** Says of a replay of the test set whether its answer is as expected; nothing of any other, and where there is no answer. */
export async function verdictOn(
  app: App,
  run: Run,
  { expected }: Pick<ReplayRow, "expected">,
  ending: Ending,
): Promise<Verdict> {
  const wanted = expectedOf(expected);
  if (wanted === null || ending.state !== "done") return NONE;
  const { result: answer } = ending;
  const data =
    "schema" in wanted ? await withoutFence(app, run, { markdown: answer, language: "json" }) : answer;
  const differs = await differenceFrom(wanted, { answer, data });
  return { passed: differs === null ? 1 : 0, differs };
}
