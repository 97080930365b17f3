import { setTimeout as rest } from "node:timers/promises";
import { createFairTurns, type TurnOptions } from "./fair-turns.ts";
import { processorTime } from "./processor-time.ts";
import { createWorkerPool, type PoolOptions, type WorkOutcome } from "./worker-pool.ts";

/**
 * Number of workers: one account gets at most two, one for its own inputs and one for those of strangers, so one is
 * always left for the next account.
 */
export const WORKERS_FOR_ALL = 3;
/** How long an input waits for its second attempt when the machine gave the first one no time, and for its third. */
export const PAUSES_MS = [10_000, 60_000];

/** An input for one attempt, with its limits. See `WorkerPool.run`. */
export interface FairJob {
  input: unknown;
  limit_ms: number;
  transfer?: ArrayBuffer[];
}

export type FairLimits = PoolOptions & { pauses_ms?: number[] };

export interface FairPool<Output> extends AsyncDisposable {
  /**
   * Calls `pack` once for each attempt, when its turn has come. Rejects with the reason of the turn's signal when that
   * aborts, and when the pool is closed or its worker cannot be started.
   */
  run(turn: TurnOptions, pack: () => FairJob | Promise<FairJob>): Promise<WorkOutcome<Output>>;
}

/**
 * Creates workers like `createWorkerPool`, shared fairly between accounts and the strangers who write to them. What counts
 * of an input's time is what the processor has given to it. An input that was held up by the machine is tried again after
 * each pause.
 */
export function createFairPool<Output>(
  path: string,
  { size = 1, pauses_ms = PAUSES_MS, ...limits }: FairLimits = {},
): FairPool<Output> {
  const pool = createWorkerPool<Output>(path, { size, measure: processorTime, ...limits });
  const closing = new AbortController();
  const inTurn = createFairTurns(size);

  const attempt = async (pack: () => FairJob | Promise<FairJob>): Promise<WorkOutcome<Output>> => {
    const { input, limit_ms, transfer } = await pack();
    return pool.run(input, limit_ms, transfer);
  };

  const endOf = (signal: AbortSignal | undefined) =>
    signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);

  return {
    async run(turn, pack) {
      for (const pause_ms of pauses_ms) {
        const outcome = await inTurn(turn, () => attempt(pack));
        if (outcome.ok || outcome.problem !== "held_up") return outcome;
        // Whoever ends the pause early is answered by the turn, or by the closed pool.
        await rest(pause_ms, undefined, { signal: endOf(turn.signal) }).catch(() => undefined);
      }
      return inTurn(turn, () => attempt(pack));
    },
    [Symbol.asyncDispose]() {
      closing.abort();
      return pool[Symbol.asyncDispose]();
    },
  };
}
