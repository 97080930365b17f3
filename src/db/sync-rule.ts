import type Sqlite from "better-sqlite3";
import { syncSwitch } from "./open-sqlite.ts";

/** How long a commit that the disk has taken stands for the next ones. */
const TRUSTED_MS = 1_000;

/** Which commits are synced. */
export interface SyncRule {
  /** Before a transaction: `promises` says whether somebody is promised that it lasts. */
  begin(promises: boolean): void;
  /** After its commit; returns whether that was synced. */
  committed(): boolean;
  failed(): void;
}

/**
 * Every commit that promises something is synced, and so is any other one unless the disk has taken a synced one just before:
 * what a failing disk would not take is to be refused at once, and not begun.
 */
export function createSyncRule(sqlite: Sqlite.Database): SyncRule {
  const setSync = syncSwitch(sqlite);
  const changes = sqlite.prepare("select total_changes()").pluck();
  let taken_ms = Number.NEGATIVE_INFINITY;
  let before: unknown;
  let synced = true;
  return {
    begin(promises) {
      synced = promises || performance.now() - taken_ms > TRUSTED_MS;
      setSync(synced);
      before = changes.get();
    },
    committed() {
      // A commit without any change writes nothing, and so says nothing of the disk.
      if (synced && changes.get() !== before) taken_ms = performance.now();
      return synced;
    },
    failed() {
      taken_ms = Number.NEGATIVE_INFINITY;
    },
  };
}
