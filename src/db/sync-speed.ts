import type { WatchLog } from "./watch.ts";

/** A commit slower than this is noticed: every mail and every call that changes something waits for its commit. */
export const SLOW_SYNC_MS = 100;
/** How many commits the median is taken over, so that a single slow one does not count. */
const SAMPLES = 16;

export const SLOW_SYNC_MEND =
  "Give the data folder a faster disk (an SSD in this machine: network storage and memory cards are slow at this), or see what else keeps this one busy.";

/** Watches how long the latest commits took to sync. */
export interface SyncSpeed {
  took: (ms: number) => void;
  /** Returns a warning about slow syncs with advice; undefined while they are fast. */
  warning: () => string | undefined;
}

/** Logs when the disk becomes slow, and when it is fast again. */
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
