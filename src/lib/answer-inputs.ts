import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "../errors.ts";

declare const self: Worker;

/** Asks a thread for a sign of life. */
export const ASK = "ask";

/** How long inputs are begun one after the other, before a question for a sign of life is answered. */
const MAX_TURN_MS = 50;

/** An input on its way to a thread; several go in one message. */
export interface NumberedInput<Input> {
  id: number;
  input: Input;
}

/** The answer to an input: the output, or the message of the error that was thrown. */
export type NumberedOutput<Output> = { id: number; output: Output } | { id: number; error: string };

/**
 * Answers each input of `createThread`, in the worker, with the result of `work`. After each wait `work` calls `goOn`,
 * as others may have had their turn meanwhile.
 */
export function answerInputs(work: (input: never, goOn: () => void) => Promise<unknown>): void {
  let outputs: NumberedOutput<unknown>[] = [];
  /** The id of the input that is worked on, for whoever has to end this thread; shared with the other side. */
  let at: Int32Array = new Int32Array(1);
  const answer = (output: NumberedOutput<unknown>): void => {
    if (outputs.push(output) > 1) return;
    setImmediate(() => {
      const message = outputs;
      outputs = [];
      postMessage(message);
    });
  };
  const workOn = async ({ id, input }: NumberedInput<never>): Promise<void> => {
    const goOn = (): void => void Atomics.store(at, 0, id);
    try {
      goOn();
      answer({ id, output: await work(input, goOn) });
    } catch (error) {
      answer({ id, error: messageOf(error) });
    }
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
