import type { Tool } from "../trust/guard/tool.ts";
import type { Run } from "./close.ts";
import { earlierAnswer, storiesOf } from "./earlier-calls.ts";
import { recordedCall } from "./recorded-calls.ts";
import { doneStep, textForModel } from "./steps.ts";
import type { MadeCall } from "./tool-call.ts";
import { doubtsAbout, inEarlierTry } from "./tool-journal.ts";

/** What is known of the call from before, so that it is not made: undefined if it is to be made. */
export function toldBefore(
  run: Run,
  tool: Tool,
  asked: { args: Record<string, unknown>; round: number },
): MadeCall | undefined {
  if (run.record !== undefined) return recordedCall(run.record, tool, asked.args);
  return tool.read_only ? undefined : toldOfEarlier(run, tool, asked);
}

/** What came of the call, or of another one in its place, in an earlier try; undefined if the call is to be made. */
function toldOfEarlier(
  run: Run,
  tool: Tool,
  asked: { args: Record<string, unknown>; round: number },
): MadeCall | undefined {
  const answer = earlierAnswer(run.journal, tool, asked);
  if (answer === undefined) return undefined;
  const { call, others, lost } = answer;
  if (lost !== undefined) {
    const text =
      lost === "same"
        ? `Not called again: ${call.text} If it was not done, ask for it once more just so.`
        : `Not called: this call of the same tool was made before, and its answer was lost. If yours is to do the same, look first whether it was done. If it is another one, ask for it again just so.\n\n${storiesOf([call])}`;
    return { text, said: true, step: doneStep(tool, asked.args, { ok: false, text }) };
  }
  run.steps.push(...doubtsAbout(call));
  const step = inEarlierTry(call.step ?? doneStep(tool, asked.args, call));
  if (others === undefined) return { text: textForModel(call), said: true, step };
  return { text: `${NOT_AGAIN}\n\n${storiesOf(others)}`, said: false, step };
}

const NOT_AGAIN =
  "Not called: this work was begun before and interrupted, and has made these calls of the same tool then. If yours is one of them, go on from there. If it is another one, ask for it again just so.";
