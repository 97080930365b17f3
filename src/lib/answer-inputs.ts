import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "../errors.ts";

declare const self: Worker;

/** Asks a thread for a sign of life. */
export const ASK = "ask";

/** For as long inputs are begun one after the other; then whoever asks for a sign of life is answered first. */
const MAX_TURN_MS = 50;

/** What goes over to a thread, together with others in one message. */
export interface NumberedInput<Input> {
  id: number;
  input: Input;
}

/** What comes back: the output, or the words of the error that was thrown. */
export type NumberedOutput<Output> = { id: number; output: Output } | { id: number; error: string };

/**
 * The other side of `createThread`, in the worker: answers each input with what `work` makes of it. `goOn` is to be
 * called by it when it goes on after a wait, as others may have had their turn meanwhile.
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
