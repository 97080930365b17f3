import { NoTasksError } from "./own-faults.ts";
import { type Measure, passedTime } from "./processor-time.ts";
import { startProcess, type WorkerProcess } from "./worker-process.ts";
import { workLimit } from "./work-limit.ts";
import { LOADED, type READY } from "./worker-says.ts";

/** How long a worker thread may take to load. */
const START_WITHIN_MS = 15_000;
/** A worker without work is ended, so that an idle server stays small: starting one takes less than a tenth of a second. */
const IDLE_MS = 20_000;
/** How often the memory of a worker with a limit is checked while it is busy. */
const WATCH_MS = 25;

/**
 * `too_slow`: the work has used its time. `held_up`: the machine did not give it that time in several times as long, or
 * has killed it.
 */
export type WorkProblem = "too_slow" | "held_up" | "crashed" | "too_much_memory";
export type WorkOutcome<Output> = { ok: true; output: Output } | { ok: false; problem: WorkProblem };

export interface WorkerPool<Output> extends AsyncDisposable {
  /**
   * Runs one input, which may use `limit_ms`. Its large arrays of bytes over the buffers in `transfer` are sent piece by
   * piece; they stay the caller's, who must not change them meanwhile. Rejects only when the pool is closed or its worker
   * cannot be started.
   */
  run(input: unknown, limit_ms: number, transfer?: ArrayBuffer[]): Promise<WorkOutcome<Output>>;
}

export interface PoolOptions {
  size?: number;
  idle_ms?: number;
  memory_bytes?: number;
  measure?: Measure;
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
  worker?: WorkerProcess | undefined;
  /** Its memory when it was ready, in bytes. */
  startBytes: number;
  running?: Promise<void> | undefined;
  idle?: ReturnType<typeof setTimeout>;
}

/**
 * Creates workers from `path`, a module that calls `answerEach`: processes, see `startProcess`. Each works on one input at
 * a time, so that ending it loses nobody else's work. Loading does not count, and `measure` says what does.
 * `memory_bytes` limits the growth of a worker during an input: a protection against decompression bombs, far above what
 * honest work takes. A worker that has kept half of it is replaced.
 */
export function createWorkerPool<Output>(
  path: string,
  {
    size = 1,
    idle_ms = IDLE_MS,
    memory_bytes = Number.POSITIVE_INFINITY,
    measure = passedTime,
  }: PoolOptions = {},
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
  const worker = (slot.worker ??= await readyWorker(path, slot, job.measure));
  try {
    const [outcome] = await Promise.all([answer<Output>(worker, job), worker.send(job.input, job.transfer)]);
    if (!outcome.ok || worker.residentBytes() - slot.startBytes > job.memory_bytes / 2) stop(slot);
    return outcome;
  } catch (error) {
    stop(slot);
    throw error;
  }
}

async function readyWorker(path: string, slot: Slot, measure: Measure): Promise<WorkerProcess> {
  const worker = startProcess(path);
  const limits = { limit_ms: START_WITHIN_MS, memory_bytes: Number.POSITIVE_INFINITY, measure };
  const first = await answer<typeof READY>(worker, limits);
  if (!first.ok) {
    worker.end();
    // Its modules are those of the server: what keeps it from starting is the machine, by its limits or its memory.
    throw new NoTasksError(undefined, `EAGAIN: the worker ${path} could not be started (${first.problem})`);
  }
  slot.startBytes = worker.residentBytes();
  for (const event of ["end", "killed"])
    worker.addEventListener(event, () => {
      if (slot.worker === worker) slot.worker = undefined;
    });
  return worker;
}

/** Resolves with what happens first: a message, the worker's end, or a limit reached. */
async function answer<Output>(
  worker: WorkerProcess,
  { limit_ms, memory_bytes, measure }: Limits,
): Promise<WorkOutcome<Output>> {
  const { promise, resolve } = Promise.withResolvers<WorkOutcome<Output>>();
  const heard = new AbortController();
  const { signal } = heard;
  const begin = () => workLimit(limit_ms, measure(worker.pid), (problem) => resolve({ ok: false, problem }));
  let limit = begin();
  const watch = watchMemory(worker, memory_bytes, () => resolve({ ok: false, problem: "too_much_memory" }));
  const onMessage = (event: Event): void => {
    const { data } = event as MessageEvent<Output | typeof LOADED>;
    if (data !== LOADED) return resolve({ ok: true, output: data });
    limit.clear();
    limit = begin();
  };
  worker.addEventListener("message", onMessage, { signal });
  worker.addEventListener("end", () => resolve({ ok: false, problem: "crashed" }), { signal });
  worker.addEventListener("killed", () => resolve({ ok: false, problem: "held_up" }), { signal });
  const outcome = await promise;
  limit.clear();
  clearInterval(watch);
  heard.abort();
  return outcome;
}

function watchMemory(
  worker: WorkerProcess,
  memory_bytes: number,
  onTooMuch: () => void,
): ReturnType<typeof setInterval> | undefined {
  if (memory_bytes === Number.POSITIVE_INFINITY) return undefined;
  const before = worker.residentBytes();
  return setInterval(() => {
    if (worker.residentBytes() - before > memory_bytes) onTooMuch();
  }, WATCH_MS);
}

function stop(slot: Slot): void {
  clearTimeout(slot.idle);
  slot.worker?.end();
  slot.worker = undefined;
}
