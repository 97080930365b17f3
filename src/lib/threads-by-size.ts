import { createFairTurns } from "./fair-turns.ts";
import { createThread, type Parcel, type Thread } from "./thread.ts";
import type { WorkOutcome } from "./worker-pool.ts";

/** Larger inputs may keep a thread busy for seconds. */
const LARGE_BYTES = 262_144;
/** Number of threads for large inputs; one party gets half of them at most. */
const LARGE_AT_ONCE = 4;

/** Returns whether an input of this size gets a thread of its own. */
export function isLarge(bytes: number): boolean {
  return bytes > LARGE_BYTES;
}

export interface ThreadsBySize<Input, Output> extends AsyncDisposable {
  /** Like `run` of a `Thread`; `bytes` is the size of the input. */
  run(from: { who: string; bytes: number }, pack: () => Parcel<Input>): Promise<WorkOutcome<Output>>;
}

/**
 * Creates threads from `path` (see `createThread`) that start when needed and end when idle. Small inputs share one.
 * Each large input has one to itself, in fair turns: it holds up only inputs of the same party, and ending its thread
 * restarts nothing else.
 */
export function createThreadsBySize<Input, Output>(
  path: string,
  limits: Parameters<typeof createThread>[1] = {},
): ThreadsBySize<Input, Output> {
  const open = () => createThread<Input, Output>(path, limits);
  const shared = open();
  const apart = Array.from({ length: LARGE_AT_ONCE }, open);
  /** The thread used last is used first, so that the others become idle and end. */
  const free = [...apart];
  const inTurn = createFairTurns(LARGE_AT_ONCE);

  const runApart = async (run: (thread: Thread<Input, Output>) => Promise<WorkOutcome<Output>>) => {
    const thread = free.pop();
    if (thread === undefined) throw new Error("More large inputs have their turn than there are threads.");
    try {
      return await run(thread);
    } finally {
      free.push(thread);
    }
  };

  return {
    run({ who, bytes }, pack) {
      if (!isLarge(bytes)) return shared.run(who, pack);
      return inTurn({ who }, () => runApart((thread) => thread.run(who, pack)));
    },
    async [Symbol.asyncDispose]() {
      for (const thread of [shared, ...apart]) await thread[Symbol.asyncDispose]();
    },
  };
}
