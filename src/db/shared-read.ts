import type Sqlite from "better-sqlite3";

/** One snapshot for all reads of the same tick outside of a transaction. */
export interface SharedRead {
  /** Begins the snapshot. Returns false when one is open, or inside of a transaction. */
  begin(): boolean;
  /** Ends the snapshot, so that what follows sees everything written by then. Must be called before a transaction. */
  end(): void;
  isOpen(): boolean;
}

/** Lets reads share a snapshot: taking and releasing SQLite's lock for each would cost more than most reads do. */
export function shareReads(sqlite: Sqlite.Database): SharedRead {
  const begin = sqlite.prepare("begin");
  const commit = sqlite.prepare("commit");
  let open = false;
  const end = (): void => {
    if (!open) return;
    open = false;
    if (!sqlite.open || !sqlite.inTransaction) return;
    try {
      commit.run();
    } catch {
      // The reader has already got the error of the disk, and a snapshot has nothing to commit.
      if (sqlite.inTransaction) sqlite.exec("rollback");
    }
  };
  return {
    begin() {
      if (open || sqlite.inTransaction) return false;
      begin.run();
      open = true;
      setImmediate(end);
      return true;
    },
    end,
    isOpen: () => open,
  };
}
