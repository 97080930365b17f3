import type Sqlite from "better-sqlite3";
import { syncSwitch } from "./open-sqlite.ts";
import type { SharedRead } from "./shared-read.ts";
import { isStorageFault } from "./storage-faults.ts";
import type { SyncSpeed } from "./sync-speed.ts";

/** For how long after a synced commit the disk is trusted to take the next ones. */
const TRUSTED_MS = 1_000;

/** Decides which commits are synced. */
export interface SyncRule {
  /** Called before a transaction. `promises`: somebody is promised that its commit lasts. */
  begin: (promises: boolean) => void;
  /** Called after its commit, with the time that this took. */
  committed: (ms: number) => void;
  failed: (error: unknown) => void;
  /**
   * Called when a statement may have changed something: a commit without any writes nothing, and so shows nothing of
   * the disk.
   */
  wrote: () => void;
}

/**
 * Every commit that promises something is synced, and so is any other one unless the disk has taken a synced one just before:
 * what a failing disk would not take is to be refused at once, and not begun.
 */
export function createSyncRule(
  sqlite: Sqlite.Database,
  { reads, speed }: { reads: SharedRead; speed: SyncSpeed },
): SyncRule {
  const setSync = syncSwitch(sqlite);
  let taken_ms = Number.NEGATIVE_INFINITY;
  let has_written = false;
  let synced = true;
  return {
    begin(promises) {
      // The rule cannot be set within a transaction, that of reads included.
      reads.end();
      synced = promises || performance.now() - taken_ms > TRUSTED_MS;
      setSync(synced);
      has_written = false;
    },
    committed(ms) {
      if (!synced) return;
      speed.took(ms);
      if (has_written) taken_ms = performance.now();
    },
    wrote: () => void (has_written = true),
    failed(error) {
      if (isStorageFault(error)) taken_ms = Number.NEGATIVE_INFINITY;
    },
  };
}
