import { ASK, type NumberedInput, type NumberedOutput } from "./answer-inputs.ts";
import { startWorker } from "./worker.ts";
import { createWorkerPool, type WorkOutcome } from "./worker-pool.ts";

/** How often a thread that has work is asked for a sign of life, and how many times it may stay silent. */
const ASK_MS = 250;
const MAX_SILENCE = 8;
/** A thread that is being loaded answers nothing yet. */
const MAX_SILENCE_AT_START = 60;
/** What an input may take that was in hand when a thread had to be ended, and what it may take more for its size. */
const ALONE_MS = 5_000;
const ALONE_MS_PER_MB = 500;
const MB = 1_048_576;
/** A thread without work is ended, so that an idle server stays small. */
const IDLE_MS = 60_000;

/** An input made for one attempt; the buffers in `transfer` are lost to the caller. */
export interface Parcel<Input> {
  input: Input;
  transfer: ArrayBuffer[];
}

export interface Thread<Input, Output> extends AsyncDisposable {
  /** `pack` is called once for each attempt. Rejects with what the work threw, or when the thread is closed. */
  run(pack: () => Parcel<Input>): Promise<WorkOutcome<Output>>;
}

/**
 * A worker thread from `path` (see `startWorker`) for work that is mostly waiting: it has any number of inputs in hand
 * at once, and answers with `answerInputs`. It is ended when it has not come back to its event loop for two seconds.
 * Nobody knows then which input held it, so each one that was in hand is tried again alone, on a thread that may be
 * ended without harm to others: only the one to blame is given up.
 */
export function createThread<Input, Output>(
  path: string,
  { idleMs = IDLE_MS, askMs = ASK_MS, aloneMs = ALONE_MS } = {},
): Thread<Input, Output> {
  const alone = createWorkerPool<NumberedOutput<Output>[]>(path, { idleMs });
  const underWay = new Set<Promise<unknown>>();
  let running: RunningThread<Input, Output> | undefined;
  let closed = false;

  const attempt = async (pack: () => Parcel<Input>): Promise<WorkOutcome<Output>> => {
    running ??= openThread<Input, Output>(path, { idleMs, askMs }, () => (running = undefined));
    const first = await running.run(pack());
    if (first !== undefined) return { ok: true, output: outputOf(first) };
    const { input, transfer } = pack();
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const limitMs = aloneMs + (bytes / MB) * ALONE_MS_PER_MB;
    const again = await alone.run([{ id: 0, input }], limitMs, transfer);
    return again.ok ? { ok: true, output: outputOf(again.output[0]) } : again;
  };

  return {
    run(pack) {
      if (closed) return Promise.reject(new Error("The thread is closed."));
      const work = attempt(pack).finally(() => underWay.delete(work));
      underWay.add(work);
      return work;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      await Promise.allSettled(underWay);
      running?.end();
      await alone[Symbol.asyncDispose]();
    },
  };
}

function outputOf<Output>(answer: NumberedOutput<Output> | undefined): Output {
  if (answer === undefined) throw new Error("The thread answered without an output.");
  if ("error" in answer) throw new Error(answer.error);
  return answer.output;
}

interface RunningThread<Input, Output> {
  /** Undefined when the thread ended without an answer. */
  run(parcel: Parcel<Input>): Promise<NumberedOutput<Output> | undefined>;
  end(): void;
}

function openThread<Input, Output>(
  path: string,
  { idleMs, askMs }: { idleMs: number; askMs: number },
  onEnd: () => void,
): RunningThread<Input, Output> {
  const inHand = new Map<number, (answer: NumberedOutput<Output> | undefined) => void>();
  const worker = startWorker(path);
  const outbox = createOutbox<Input>(worker);
  let last = 0;
  let silence = MAX_SILENCE - MAX_SILENCE_AT_START;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let watch: ReturnType<typeof setInterval> | undefined;

  const end = (): void => {
    clearTimeout(idle);
    clearInterval(watch);
    worker.terminate();
    onEnd();
    for (const settle of inHand.values()) settle(undefined);
    inHand.clear();
  };
  /** Counted in turns of this loop: after a pause of the whole process, what the thread has said is read first. */
  const ask = (): void => {
    silence += 1;
    if (silence > MAX_SILENCE) end();
    else worker.postMessage(ASK);
  };
  const rest = (): void => {
    clearInterval(watch);
    watch = undefined;
    worker.unref();
    idle = setTimeout(end, idleMs);
    idle.unref();
  };
  worker.addEventListener("message", ({ data }: MessageEvent<string | NumberedOutput<Output>[]>) => {
    silence = 0;
    if (typeof data === "string") return;
    for (const answer of data) {
      inHand.get(answer.id)?.(answer);
      inHand.delete(answer.id);
    }
    if (inHand.size === 0) rest();
  });
  for (const event of ["error", "messageerror", "close"] as const)
    worker.addEventListener(event, (fault) => {
      fault.preventDefault();
      end();
    });

  return {
    run({ input, transfer }) {
      clearTimeout(idle);
      if (watch === undefined) worker.ref();
      watch ??= setInterval(ask, askMs);
      last += 1;
      const { promise, resolve } = Promise.withResolvers<NumberedOutput<Output> | undefined>();
      inHand.set(last, resolve);
      outbox({ id: last, input }, transfer);
      return promise;
    },
    end,
  };
}

/** Posts together what comes in one turn of the loop: a message costs more than what is in it. */
function createOutbox<Input>(
  worker: Worker,
): (numbered: NumberedInput<Input>, transfer: ArrayBuffer[]) => void {
  let inputs: NumberedInput<Input>[] = [];
  let transfers: ArrayBuffer[] = [];
  const flush = (): void => {
    const [message, buffers] = [inputs, transfers];
    [inputs, transfers] = [[], []];
    worker.postMessage(message, buffers);
  };
  return (numbered, transfer) => {
    if (inputs.push(numbered) === 1) setImmediate(flush);
    transfers.push(...transfer);
  };
}
