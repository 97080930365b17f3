import { createFairTurns, type TurnOptions } from "./fair-turns.ts";
import { createWorkerPool, type WorkOutcome } from "./worker-pool.ts";

/**
 * Number of threads: one account gets at most two, one for its own inputs and one for those of strangers, so one is
 * always left for the next account.
 */
export const THREADS_FOR_ALL = 3;

/**
 * An input for one attempt, with its limits. The buffers in `transfer` move to the worker, so the caller loses them.
 */
export interface FairJob {
  input: unknown;
  limit_ms: number;
  transfer?: ArrayBuffer[];
}

export interface FairPool<Output> extends AsyncDisposable {
  /**
   * Calls `pack` once for each attempt, when its turn has come. Rejects with the reason of the turn's signal when that
   * aborts, and when the pool is closed or its worker cannot be started.
   */
  run(turn: Omit<TurnOptions, "alone">, pack: () => FairJob | Promise<FairJob>): Promise<WorkOutcome<Output>>;
}

/**
 * Creates worker threads like `createWorkerPool`, shared fairly between accounts and the strangers who write to them.
 * An input that took too much memory while others ran is tried once more alone, because nobody can tell which one took
 * it.
 */
export function createFairPool<Output>(
  path: string,
  { size = 1, ...limits }: Parameters<typeof createWorkerPool>[1] = {},
): FairPool<Output> {
  const pool = createWorkerPool<Output>(path, { size, ...limits });
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

  return {
    async run(turn, pack) {
      const { outcome, beside } = await inTurn(turn, () => attempt(pack));
      if (outcome.ok || outcome.problem !== "too_much_memory" || !beside) return outcome;
      return (await inTurn({ ...turn, alone: true }, () => attempt(pack))).outcome;
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
