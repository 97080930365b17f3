import type { WatchLog } from "./watch.ts";

/** From here on people notice: every mail and every call that changes something waits for its commit. */
export const SLOW_SYNC_MS = 100;
/** Enough that a single hiccup is none: what counts is the time that half of them took at least. */
const SAMPLES = 16;

export const SLOW_SYNC_MEND =
  "Give the data folder a faster disk (an SSD in this machine: network storage and memory cards are slow at this), or see what else keeps this one busy.";

/** How long the latest commits took to be safe on the disk. */
export interface SyncSpeed {
  took: (ms: number) => void;
  /** A sentence on slow syncs, with the mend; undefined while all is well. */
  warning: () => string | undefined;
}

/** Says in the log when the disk becomes slow, and when it is well again. */
export function createSyncSpeed(log: Pick<WatchLog, "warn" | "info">): SyncSpeed {
  const latest: number[] = [];
  let slow = false;
  const typical = (): number => latest.toSorted((a, b) => a - b)[SAMPLES / 2] ?? 0;
  const words = (): string =>
    `The disk is slow: a commit takes ${Math.round(typical())} ms, and every mail waits for one. ${SLOW_SYNC_MEND}`;
  return {
    took(ms) {
      latest.push(ms);
      if (latest.length > SAMPLES) latest.shift();
      if (!slow && latest.length === SAMPLES && typical() > SLOW_SYNC_MS) {
        slow = true;
        log.warn({}, words());
      } else if (slow && typical() < SLOW_SYNC_MS / 2) {
        slow = false;
        log.info({}, "the disk is quick again");
      }
    },
    warning: () => (slow ? words() : undefined),
  };
}
