import { startWorker } from "./worker.ts";

/** A worker thread that has not loaded by then never will. */
const START_WITHIN_MS = 15_000;
/** A worker without work is ended, so that an idle server stays small. */
const IDLE_MS = 60_000;

export type WorkOutcome<Output> =
  | { ok: true; output: Output }
  | { ok: false; problem: "too_slow" | "crashed" };

export interface WorkerPool<Output> extends AsyncDisposable {
  /** `transfer` is lost to the caller. Rejects only when the pool is closed or its worker cannot be started. */
  run(input: unknown, limitMs: number, transfer?: ArrayBuffer[]): Promise<WorkOutcome<Output>>;
}

interface Job<Output> {
  input: unknown;
  limitMs: number;
  transfer: ArrayBuffer[];
  settle: PromiseWithResolvers<WorkOutcome<Output>>;
}

interface Slot {
  worker?: Worker | undefined;
  running?: Promise<void> | undefined;
  idle?: ReturnType<typeof setTimeout>;
}

/**
 * Worker threads from `path` (see `startWorker`), each given one input at a time, so that ending one costs nobody
 * else their work. The worker posts `"ready"` once, then one output for each input.
 */
export function createWorkerPool<Output>(
  path: string,
  { size = 1, idleMs = IDLE_MS }: { size?: number; idleMs?: number } = {},
): WorkerPool<Output> {
  const queue: Job<Output>[] = [];
  const slots: Slot[] = Array.from({ length: size }, () => ({}));
  let closed = false;

  const drain = async (slot: Slot): Promise<void> => {
    clearTimeout(slot.idle);
    slot.worker?.ref();
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      await attempt<Output>(path, slot, job).then(job.settle.resolve, job.settle.reject);
    }
    slot.worker?.unref();
    slot.idle = setTimeout(() => stop(slot), idleMs);
    slot.idle.unref();
    slot.running = undefined;
  };

  return {
    run(input, limitMs, transfer = []) {
      if (closed) return Promise.reject(new Error("The worker pool is closed."));
      const settle = Promise.withResolvers<WorkOutcome<Output>>();
      queue.push({ input, limitMs, transfer, settle });
      const free = slots.find((slot) => slot.running === undefined);
      if (free !== undefined) free.running = drain(free);
      return settle.promise;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      for (const job of queue.splice(0)) job.settle.reject(new Error("The worker pool is closed."));
      await Promise.all(slots.flatMap(({ running }) => running ?? []));
      for (const slot of slots) stop(slot);
    },
  };
}

async function attempt<Output>(path: string, slot: Slot, job: Job<Output>): Promise<WorkOutcome<Output>> {
  slot.worker ??= await readyWorker(path, slot);
  const outcome = await exchange<Output>(slot.worker, job);
  if (!outcome.ok) stop(slot);
  return outcome;
}

async function readyWorker(path: string, slot: Slot): Promise<Worker> {
  const worker = startWorker(path);
  const first = await answer(worker, START_WITHIN_MS);
  if (!first.ok) {
    worker.terminate();
    throw new Error(`The worker ${path} could not be started (${first.problem}).`);
  }
  worker.addEventListener("close", () => {
    if (slot.worker === worker) slot.worker = undefined;
  });
  return worker;
}

function exchange<Output>(worker: Worker, job: Job<Output>): Promise<WorkOutcome<Output>> {
  const outcome = answer<Output>(worker, job.limitMs);
  worker.postMessage(job.input, job.transfer);
  return outcome;
}

/** The next thing that happens to a worker: a message, its end, or `limitMs` without either. */
async function answer<Output>(worker: Worker, limitMs: number): Promise<WorkOutcome<Output>> {
  const { promise, resolve } = Promise.withResolvers<WorkOutcome<Output>>();
  const heard = new AbortController();
  const { signal } = heard;
  const timer = setTimeout(() => resolve({ ok: false, problem: "too_slow" }), limitMs);
  const onEnd = (event: Event): void => {
    event.preventDefault();
    resolve({ ok: false, problem: "crashed" });
  };
  worker.addEventListener("message", (event) => resolve({ ok: true, output: event.data as Output }), {
    signal,
  });
  worker.addEventListener("error", onEnd, { signal });
  worker.addEventListener("messageerror", onEnd, { signal });
  worker.addEventListener("close", onEnd, { signal });
  const outcome = await promise;
  clearTimeout(timer);
  heard.abort();
  return outcome;
}

function stop(slot: Slot): void {
  clearTimeout(slot.idle);
  slot.worker?.terminate();
  slot.worker = undefined;
}
