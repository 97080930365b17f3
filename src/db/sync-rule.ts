import type Sqlite from "better-sqlite3";
import { syncSwitch } from "./open-sqlite.ts";
import type { SharedRead } from "./shared-read.ts";
import { codeOf } from "../errors.ts";
import { forgetCached } from "../lib/cached-pages.ts";
import { cutLog } from "./cut-log.ts";
import { isStorageFault, StorageError } from "./storage-faults.ts";
import type { SyncSpeed } from "./sync-speed.ts";

/** How long after a synced commit the disk is trusted to take the next ones. */
const TRUSTED_MS = 1_000;

/** A write or a sync that the disk has refused. */
const REFUSED = /^SQLITE_IOERR/;

/** Decides which commits are synced. */
export interface SyncRule {
  /**
   * Called before a transaction. `promises` says whether somebody is promised that its commit lasts. Throws what keeps the
   * log from being begun anew after a failed sync.
   */
  begin: (promises: boolean) => void;
  /** Called after the commit with its duration in milliseconds. */
  committed: (ms: number) => void;
  failed: (error: unknown) => void;
  /**
   * Called when a statement may have changed something. A commit without changes writes nothing, and so proves nothing
   * about the disk.
   */
  wrote: () => void;
}

/**
 * Returns the rule: a commit that promises something is always synced; any other only when the last synced commit is
 * more than a second ago, so that work which a failing disk would lose is refused at its beginning. After a write or sync
 * that failed the log is begun anew before the next commit: the system tells of what it has dropped once, so that later
 * commits would stand, synced, behind a gap which ends the log for whoever reads it after a power cut.
 */
export function createSyncRule(
  sqlite: Sqlite.Database,
  { reads, speed }: { reads: SharedRead; speed: SyncSpeed },
): SyncRule {
  const setSync = syncSwitch(sqlite);
  let taken_ms = Number.NEGATIVE_INFINITY;
  let has_written = false;
  let synced = true;
  let has_gap = false;
  let is_forgetting = false;
  const beginLogAnew = (): void => {
    if (is_forgetting) throw inUse();
    try {
      if (!cutLog(sqlite)) throw inUse();
      has_gap = false;
    } catch (error) {
      is_forgetting = true;
      void forgetCached(sqlite.name).then(() => (is_forgetting = false));
      throw error;
    }
  };
  return {
    begin(promises) {
      // SQLite ignores the setting within a transaction, a snapshot for reads included.
      reads.end();
      if (has_gap) beginLogAnew();
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
      if (REFUSED.test(codeOf(error))) has_gap = true;
    },
  };
}

function inUse(): StorageError {
  return new StorageError("SQLITE_IOERR", "The log is in use, and is to be begun anew after a failed sync");
}
