import { type Measure, passedTime } from "./processor-time.ts";
import { residentBytes } from "./resident.ts";
import { startWorker } from "./worker.ts";
import { workLimit } from "./work-limit.ts";
import { LOADED } from "./worker-says.ts";

/** How long a worker thread may take to load. */
const START_WITHIN_MS = 15_000;
/** A worker without work is ended, so that an idle server stays small. */
const IDLE_MS = 60_000;
/** How often the process's memory is checked while a worker with a limit is busy. */
const WATCH_MS = 25;

/** `too_slow`: the work has used its time. `held_up`: the machine did not give it that time in several times as long. */
export type WorkProblem = "too_slow" | "held_up" | "crashed" | "too_much_memory";
export type WorkOutcome<Output> = { ok: true; output: Output } | { ok: false; problem: WorkProblem };

export interface WorkerPool<Output> extends AsyncDisposable {
  /**
   * Runs one input, which may use `limit_ms`; its `transfer` buffers move to the worker. Rejects only when the pool is
   * closed or its worker cannot be started.
   */
  run(input: unknown, limit_ms: number, transfer?: ArrayBuffer[]): Promise<WorkOutcome<Output>>;
}

interface Limits {
  limit_ms: number;
  memory_bytes: number;
  measure: Measure;
}

interface Job<Output> extends Limits {
  input: unknown;
  transfer: ArrayBuffer[];
  settle: PromiseWithResolvers<WorkOutcome<Output>>;
}

interface Slot {
  worker?: Worker | undefined;
  /** What the worker has said of itself when it was ready. */
  task?: string | undefined;
  /** Memory of the process when the worker was started, in bytes. */
  startBytes: number;
  running?: Promise<void> | undefined;
  idle?: ReturnType<typeof setTimeout>;
}

/**
 * Creates worker threads from `path` (see `startWorker`). Each works on one input at a time, so that ending it loses
 * nobody else's work. The worker says once that it is ready (`sayReady`), then posts one output for each input; loading
 * does not count (`sayLoaded`), and `measure` says what does. A thread's own memory cannot be limited, so `memory_bytes`
 * limits the growth of the whole process during an input: a protection against decompression bombs, far above what
 * honest work takes. A worker that has kept half of it is replaced.
 */
export function createWorkerPool<Output>(
  path: string,
  {
    size = 1,
    idle_ms = IDLE_MS,
    memory_bytes = Number.POSITIVE_INFINITY,
    measure = passedTime,
  }: { size?: number; idle_ms?: number; memory_bytes?: number; measure?: Measure } = {},
): WorkerPool<Output> {
  const queue: Job<Output>[] = [];
  const slots: Slot[] = Array.from({ length: size }, () => ({ startBytes: 0 }));
  let closed = false;

  const drain = async (slot: Slot): Promise<void> => {
    clearTimeout(slot.idle);
    slot.worker?.ref();
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      await attempt<Output>(path, slot, job).then(job.settle.resolve, job.settle.reject);
    }
    slot.worker?.unref();
    slot.idle = setTimeout(() => stop(slot), idle_ms);
    slot.idle.unref();
    slot.running = undefined;
  };

  return {
    run(input, limit_ms, transfer = []) {
      if (closed) return Promise.reject(new Error("The worker pool is closed."));
      const settle = Promise.withResolvers<WorkOutcome<Output>>();
      queue.push({ input, limit_ms, memory_bytes, measure, transfer, settle });
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
  slot.worker ??= await readyWorker(path, slot, job.measure);
  const outcome = await exchange<Output>(slot.worker, { ...job, task: slot.task });
  if (!outcome.ok || residentBytes() - slot.startBytes > job.memory_bytes / 2) stop(slot);
  return outcome;
}

async function readyWorker(path: string, slot: Slot, measure: Measure): Promise<Worker> {
  slot.startBytes = residentBytes();
  const worker = startWorker(path);
  const limits = { limit_ms: START_WITHIN_MS, memory_bytes: Number.POSITIVE_INFINITY, measure };
  const first = await answer<string>(worker, { ...limits, task: undefined });
  if (!first.ok) {
    worker.terminate();
    throw new Error(`The worker ${path} could not be started (${first.problem}).`);
  }
  slot.task = first.output;
  worker.addEventListener("close", () => {
    if (slot.worker === worker) slot.worker = undefined;
  });
  return worker;
}

function exchange<Output>(
  worker: Worker,
  job: Job<Output> & Pick<Slot, "task">,
): Promise<WorkOutcome<Output>> {
  const outcome = answer<Output>(worker, job);
  worker.postMessage(job.input, job.transfer);
  return outcome;
}

/** Resolves with what happens first: a message, the worker's end, or a limit reached. */
async function answer<Output>(
  worker: Worker,
  { limit_ms, memory_bytes, measure, task }: Limits & Pick<Slot, "task">,
): Promise<WorkOutcome<Output>> {
  const { promise, resolve } = Promise.withResolvers<WorkOutcome<Output>>();
  const heard = new AbortController();
  const { signal } = heard;
  const begin = () => workLimit(limit_ms, measure(task), (problem) => resolve({ ok: false, problem }));
  let limit = begin();
  const watch = watchMemory(memory_bytes, () => resolve({ ok: false, problem: "too_much_memory" }));
  const onEnd = (event: Event): void => {
    event.preventDefault();
    resolve({ ok: false, problem: "crashed" });
  };
  const onMessage = ({ data }: MessageEvent<Output | typeof LOADED>): void => {
    if (data !== LOADED) return resolve({ ok: true, output: data });
    limit.clear();
    limit = begin();
  };
  worker.addEventListener("message", onMessage, { signal });
  worker.addEventListener("error", onEnd, { signal });
  worker.addEventListener("messageerror", onEnd, { signal });
  worker.addEventListener("close", onEnd, { signal });
  const outcome = await promise;
  limit.clear();
  clearInterval(watch);
  heard.abort();
  return outcome;
}

function watchMemory(
  memory_bytes: number,
  onTooMuch: () => void,
): ReturnType<typeof setInterval> | undefined {
  if (memory_bytes === Number.POSITIVE_INFINITY) return undefined;
  const before = residentBytes();
  return setInterval(() => {
    if (residentBytes() - before > memory_bytes) onTooMuch();
  }, WATCH_MS);
}

function stop(slot: Slot): void {
  clearTimeout(slot.idle);
  slot.worker?.terminate();
  slot.worker = undefined;
}
