import { createFairTurns, type TurnOptions } from "./fair-turns.ts";
import { createWorkerPool, type WorkOutcome } from "./worker-pool.ts";

/** Threads: an account has one for itself and one for its strangers, and the third is for the next account. */
export const THREADS_FOR_ALL = 3;

/** An input made for one attempt, and what it may take; the buffers in `transfer` are lost to the caller. */
export interface FairJob {
  input: unknown;
  limitMs: number;
  transfer?: ArrayBuffer[];
}

export interface FairPool<Output> extends AsyncDisposable {
  /**
   * `pack` is called once for each attempt, when its turn has come. Rejects when the pool is closed, its worker cannot be
   * started, or the signal of the turn aborts, with its reason.
   */
  run(turn: Omit<TurnOptions, "alone">, pack: () => FairJob | Promise<FairJob>): Promise<WorkOutcome<Output>>;
}

/**
 * Worker threads as `createWorkerPool` makes them, for what accounts and strangers send: all have their turns. An input
 * that took too much memory while others were worked on is tried once more alone, as nobody can tell whose it was.
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
      const { input, limitMs, transfer } = await pack();
      const outcome = await pool.run(input, limitMs, transfer);
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
