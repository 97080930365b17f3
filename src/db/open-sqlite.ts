import Sqlite from "better-sqlite3";

/**
 * The only way to a database file. FULL holds for whoever only looks at it as well: the last connection that closes copies
 * the log back and deletes it, and where that is not synced a power cut takes acknowledged mail. Throws what SQLite does.
 */
export function openSqlite(place: string | Buffer, options: Sqlite.Options): Sqlite.Database {
  const sqlite = new Sqlite(place, options);
  try {
    sqlite.pragma("synchronous = FULL");
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/**
 * Writes the database to the new file `to`, which is not synced: SQLite does as the connection says, and whoever waits for
 * a commit would wait for all of it to be on the disk. It is for a copy that is read once and deleted.
 */
export function copyUnsynced(sqlite: Sqlite.Database, to: string): void {
  // A rollback, or the recovery of the log, has been done by now, and what only reads writes nothing.
  sqlite.pragma("synchronous = OFF");
  try {
    sqlite.prepare("vacuum into ?").run(to);
  } finally {
    sqlite.pragma("synchronous = FULL");
  }
}

/**
 * Returns what says, before a transaction, whether its commit is synced. One that is not is synced by the next that is, and
 * by every checkpoint; it outlives this process, but not a power cut before that.
 */
export function syncSwitch(sqlite: Sqlite.Database): (synced: boolean) => void {
  let is_on = true;
  return (synced) => {
    if (synced === is_on) return;
    // Not prepared: SQLite obeys such a pragma where it compiles it.
    sqlite.pragma(synced ? "synchronous = FULL" : "synchronous = NORMAL");
    is_on = synced;
  };
}
