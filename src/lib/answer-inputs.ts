import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { answerEach } from "./worker-says.ts";

declare const self: Worker;

/** The message that asks a thread whether its event loop still turns. */
export const ASK = "ask";

/** How long a thread starts inputs one after the other before it answers `ASK`. */
const MAX_TURN_MS = 50;

/** An input as sent to a thread; one message holds several. */
export interface NumberedInput<Input> {
  id: number;
  input: Input;
}

/** The answer to an input: the output, or the message of the error that was thrown. */
export type NumberedOutput<Output> = { id: number; output: Output } | { id: number; error: string };

type Work = (input: never, goOn: () => void) => Promise<unknown>;

/**
 * Runs inside the worker of `createThread`: answers each input with the result of `work`. `work` calls `goOn` after
 * each `await`, because other inputs may have run in between. In a process, inputs are worked on one at a time.
 */
export function answerInputs(work: Work): void {
  if (Bun.isMainThread)
    answerEach(async (numbered: NumberedInput<never>) => ({ output: await answerTo(numbered, work) }));
  else answerAtOnce(work);
}

/** Works on an input. `goOn` is called first, and by the work. */
async function answerTo(
  { id, input }: NumberedInput<never>,
  work: Work,
  goOn = (): void => undefined,
): Promise<NumberedOutput<unknown>> {
  try {
    goOn();
    return { id, output: await work(input, goOn) };
  } catch (error) {
    return { id, error: messageOf(error) };
  }
}

function answerAtOnce(work: Work): void {
  let outputs: NumberedOutput<unknown>[] = [];
  /**
   * The id of the input being worked on, in memory shared with the main thread, which reads it to know whose input is
   * to blame.
   */
  let at: Int32Array = new Int32Array(1);
  const answer = (output: NumberedOutput<unknown>): void => {
    if (outputs.push(output) > 1) return;
    setImmediate(() => {
      const message = outputs;
      outputs = [];
      postMessage(message);
    });
  };
  const workOn = async (numbered: NumberedInput<never>): Promise<void> => {
    answer(await answerTo(numbered, work, () => void Atomics.store(at, 0, numbered.id)));
  };
  const begin = async (inputs: NumberedInput<never>[]): Promise<void> => {
    let turn_ms = performance.now();
    for (const numbered of inputs) {
      if (performance.now() - turn_ms > MAX_TURN_MS) {
        await nextTurn();
        turn_ms = performance.now();
      }
      void workOn(numbered);
    }
  };
  self.addEventListener("message", ({ data }: MessageEvent<string | Int32Array | NumberedInput<never>[]>) => {
    if (data === ASK) postMessage("yes");
    else if (data instanceof Int32Array) at = data;
    else void begin(data as NumberedInput<never>[]);
  });
  postMessage("ready");
}
