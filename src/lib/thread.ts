import { ASK, type NumberedInput, type NumberedOutput } from "./answer-inputs.ts";
import { createFairPool } from "./fair-pool.ts";
import { passedTime } from "./processor-time.ts";
import { startWorker } from "./worker.ts";
import type { WorkOutcome } from "./worker-pool.ts";
import { MB } from "./sizes.ts";

/** How often a busy thread is asked whether its event loop turns, and how many questions it may leave unanswered. */
const ASK_MS = 250;
const MAX_SILENCE = 8;
/** The same while a thread is still loading, when it cannot answer. */
const MAX_SILENCE_AT_START = 60;
/**
 * After this many of its threads were ended, an input is worked on alone: another may never have been identified as the
 * cause.
 */
const MAX_ENDED = 3;
/** How long all inputs of a party that had a thread ended are worked on alone, which is slow. */
const SUSPECT_MS = 120_000;
/** How long an input that is worked on alone may take, and how much longer for each megabyte. */
const ALONE_MS = 5_000;
const ALONE_MS_PER_MB = 500;
/** A thread without work is ended, so that an idle server stays small. */
const IDLE_MS = 60_000;

/** An input for one attempt. The buffers in `transfer` move to the thread, so the caller loses them. */
export interface Parcel<Input> {
  input: Input;
  transfer: ArrayBuffer[];
}

export interface Thread<Input, Output> extends AsyncDisposable {
  /**
   * Calls `pack` once for each attempt; `who` is the party from which the input comes. Rejects with what the work
   * threw, or when the thread is closed.
   */
  run(who: string, pack: () => Parcel<Input>): Promise<WorkOutcome<Output>>;
}

/**
 * Creates a worker thread from `path` (see `startWorker`) for work that mostly waits: it works on any number of inputs
 * at once, and answers with `answerInputs`. If its event loop stops for two seconds, the thread is ended and the other
 * inputs continue in a new one. The party whose input blocked it is isolated for a while: its inputs are tried one by
 * one in a process of their own, where one that takes too long fails. Isolated parties take turns.
 */
export function createThread<Input, Output>(
  path: string,
  { idle_ms = IDLE_MS, ask_ms = ASK_MS, alone_ms = ALONE_MS, nowMs = () => performance.now() } = {},
): Thread<Input, Output> {
  const alone = createFairPool<NumberedOutput<Output>>(path, { idle_ms, measure: passedTime });
  const underWay = new Set<Promise<unknown>>();
  /** Isolated parties, with the time in milliseconds until which they are. */
  const suspects = new Map<string, number>();
  let running: RunningThread<Input, Output> | undefined;
  let closed = false;

  const isSuspect = (who: string): boolean => (suspects.get(who) ?? 0) > nowMs();
  const onEnd = (culprit: string | undefined): void => {
    running = undefined;
    for (const who of suspects.keys()) if (!isSuspect(who)) suspects.delete(who);
    if (culprit !== undefined) suspects.set(culprit, nowMs() + SUSPECT_MS);
  };

  const attempt = async (who: string, pack: () => Parcel<Input>): Promise<WorkOutcome<Output>> => {
    for (let ended = 0; ended < MAX_ENDED && !isSuspect(who); ended += 1) {
      running ??= openThread<Input, Output>(path, { idle_ms, ask_ms }, onEnd);
      const answer = await running.run(who, pack());
      if (answer !== undefined) return { ok: true, output: outputOf(answer) };
    }
    const outcome = await alone.run({ who }, () => {
      const { input, transfer } = pack();
      const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, 0);
      return { input: { id: 0, input }, limit_ms: alone_ms + (bytes / MB) * ALONE_MS_PER_MB, transfer };
    });
    return outcome.ok ? { ok: true, output: outputOf(outcome.output) } : outcome;
  };

  return {
    run(who, pack) {
      if (closed) return Promise.reject(new Error("The thread is closed."));
      const work = attempt(who, pack).finally(() => underWay.delete(work));
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

function outputOf<Output>(answer: NumberedOutput<Output>): Output {
  if ("error" in answer) throw new Error(answer.error);
  return answer.output;
}

interface RunningThread<Input, Output> {
  /** Resolves with undefined when the thread ended without an answer. */
  run(who: string, parcel: Parcel<Input>): Promise<NumberedOutput<Output> | undefined>;
  end(): void;
}

interface InHand<Output> {
  who: string;
  settle: (answer: NumberedOutput<Output> | undefined) => void;
}

function openThread<Input, Output>(
  path: string,
  { idle_ms, ask_ms }: { idle_ms: number; ask_ms: number },
  /** Called with the party whose input the thread was working on, if any. */
  onEnd: (culprit: string | undefined) => void,
): RunningThread<Input, Output> {
  const inHand = new Map<number, InHand<Output>>();
  const worker = startWorker(path);
  const workedOn = shareNumber(worker);
  const outbox = createOutbox<Input>(worker);
  let last = 0;
  let silence = MAX_SILENCE - MAX_SILENCE_AT_START;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let watch: ReturnType<typeof setInterval> | undefined;
  let ended = false;

  const end = (): void => {
    // A thread told to end closes later, when another may be running.
    if (ended) return;
    ended = true;
    clearTimeout(idle);
    clearInterval(watch);
    worker.terminate();
    onEnd(inHand.get(workedOn())?.who);
    for (const { settle } of inHand.values()) settle(undefined);
    inHand.clear();
  };
  /**
   * Counts silence in turns of this event loop, so that after a pause of the whole process the thread's messages are
   * read first.
   */
  const ask = (): void => {
    silence += 1;
    if (silence > MAX_SILENCE) end();
    else worker.postMessage(ASK);
  };
  const rest = (): void => {
    clearInterval(watch);
    watch = undefined;
    worker.unref();
    idle = setTimeout(end, idle_ms);
    idle.unref();
  };
  worker.addEventListener("message", ({ data }: MessageEvent<string | NumberedOutput<Output>[]>) => {
    silence = 0;
    if (typeof data === "string") return;
    for (const answer of data) {
      inHand.get(answer.id)?.settle(answer);
      inHand.delete(answer.id);
    }
    if (inHand.size === 0) rest();
  });
  onFault(worker, end);

  return {
    run(who, { input, transfer }) {
      clearTimeout(idle);
      if (watch === undefined) worker.ref();
      watch ??= setInterval(ask, ask_ms);
      last += 1;
      const { promise, resolve } = Promise.withResolvers<NumberedOutput<Output> | undefined>();
      inHand.set(last, { who, settle: resolve });
      outbox({ id: last, input }, transfer);
      return promise;
    },
    end,
  };
}

function onFault(worker: Worker, act: () => void): void {
  for (const event of ["error", "messageerror", "close"] as const)
    worker.addEventListener(event, (fault) => {
      fault.preventDefault();
      act();
    });
}

/** Shares a number that the thread writes and this side can read even while the thread is blocked. */
function shareNumber(worker: Worker): () => number {
  const shared = new Int32Array(new SharedArrayBuffer(4));
  worker.postMessage(shared);
  return () => Atomics.load(shared, 0);
}

/** Posts the inputs of one turn of the event loop as one message: a message costs more than its content. */
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
