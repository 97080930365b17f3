import { setTimeout as rest } from "node:timers/promises";
import { createFairTurns, type TurnOptions } from "./fair-turns.ts";
import { processorTime } from "./processor-time.ts";
import { createWorkerPool, type WorkOutcome } from "./worker-pool.ts";

/**
 * Number of threads: one account gets at most two, one for its own inputs and one for those of strangers, so one is
 * always left for the next account.
 */
export const THREADS_FOR_ALL = 3;
/** How long an input waits for its second attempt when the machine gave the first one no time. */
const PAUSE_MS = 10_000;

/**
 * An input for one attempt, with its limits. The buffers in `transfer` move to the worker, so the caller loses them.
 */
export interface FairJob {
  input: unknown;
  limit_ms: number;
  transfer?: ArrayBuffer[];
}

export type FairLimits = NonNullable<Parameters<typeof createWorkerPool>[1]> & { pause_ms?: number };

export interface FairPool<Output> extends AsyncDisposable {
  /**
   * Calls `pack` once for each attempt, when its turn has come. Rejects with the reason of the turn's signal when that
   * aborts, and when the pool is closed or its worker cannot be started.
   */
  run(turn: Omit<TurnOptions, "alone">, pack: () => FairJob | Promise<FairJob>): Promise<WorkOutcome<Output>>;
}

/**
 * Creates worker threads like `createWorkerPool`, shared fairly between accounts and the strangers who write to them.
 * What counts of an input's time is what the processor has given to it. An input is tried twice at most: one that was
 * held up by the machine once more after a pause, and one that took too much memory while others ran once more alone,
 * because nobody can tell which one took it.
 */
export function createFairPool<Output>(
  path: string,
  { size = 1, pause_ms = PAUSE_MS, ...limits }: FairLimits = {},
): FairPool<Output> {
  const pool = createWorkerPool<Output>(path, { size, measure: processorTime, ...limits });
  const closing = new AbortController();
  const inTurn = createFairTurns(size);
  let begun = 0;
  let under_way = 0;

  const attempt = async (
    pack: () => FairJob | Promise<FairJob>,
  ): Promise<{ outcome: WorkOutcome<Output>; beside: boolean }> => {
    const mine = ++begun;
    const beside = under_way++ > 0;
    try {
      const { input, limit_ms, transfer } = await pack();
      const outcome = await pool.run(input, limit_ms, transfer);
      return { outcome, beside: beside || begun > mine };
    } finally {
      under_way -= 1;
    }
  };

  const endOf = (signal: AbortSignal | undefined) =>
    signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);

  return {
    async run(turn, pack) {
      const { outcome, beside } = await inTurn(turn, () => attempt(pack));
      if (outcome.ok) return outcome;
      const is_held_up = outcome.problem === "held_up";
      if (!is_held_up && !(outcome.problem === "too_much_memory" && beside)) return outcome;
      // Whoever ends the pause early is answered by the turn, or by the closed pool.
      if (is_held_up) await rest(pause_ms, undefined, { signal: endOf(turn.signal) }).catch(() => undefined);
      return (await inTurn({ ...turn, alone: !is_held_up }, () => attempt(pack))).outcome;
    },
    [Symbol.asyncDispose]() {
      closing.abort();
      return pool[Symbol.asyncDispose]();
    },
  };
}
