import { messageOf } from "../errors.ts";

declare const self: Worker;

/** Asks a thread for a sign of life. */
export const ASK = "ask";

/** What goes over to a thread, together with others in one message. */
export interface NumberedInput<Input> {
  id: number;
  input: Input;
}

/** What comes back: the output, or the words of the error that was thrown. */
export type NumberedOutput<Output> = { id: number; output: Output } | { id: number; error: string };

/** The other side of `createThread`, in the worker: answers each input with what `work` makes of it. */
export function answerInputs(work: (input: never) => Promise<unknown>): void {
  let outputs: NumberedOutput<unknown>[] = [];
  const answer = (output: NumberedOutput<unknown>): void => {
    if (outputs.push(output) > 1) return;
    setImmediate(() => {
      const message = outputs;
      outputs = [];
      postMessage(message);
    });
  };
  const workOn = async ({ id, input }: NumberedInput<never>): Promise<void> => {
    try {
      answer({ id, output: await work(input) });
    } catch (error) {
      answer({ id, error: messageOf(error) });
    }
  };
  self.addEventListener("message", ({ data }: MessageEvent<string | NumberedInput<never>[]>) => {
    if (data === ASK) postMessage("yes");
    else for (const numbered of data as NumberedInput<never>[]) void workOn(numbered);
  });
  postMessage("ready");
}
