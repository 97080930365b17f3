import type Sqlite from "better-sqlite3";

/** The reads outside of a transaction that come in the same tick. */
export interface SharedRead {
  /** True when it begins one; does nothing inside of a transaction. */
  begin(): boolean;
  /** Before anything that is not to happen in the middle of it, or that is to see what has been written by then. */
  end(): void;
  isOpen(): boolean;
}

/** Has them share a snapshot of the database: its lock, taken and given back for each, would cost more than most of them do. */
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
      // A disk that fails, or damage: whoever read has heard of it, and nothing was to be kept.
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
