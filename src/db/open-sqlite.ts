import Sqlite from "better-sqlite3";

/**
 * Opens a database file; nothing else does. Synchronous FULL holds for readers as well: the last connection that closes
 * copies the log back and deletes it, and unless that is synced a power cut loses acknowledged mail. Throws SQLite's
 * errors.
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
 * Copies the database to the new file `to` without syncing it, for a copy that is read once and deleted: syncing all of
 * it would make every commit wait.
 */
export function copyUnsynced(sqlite: Sqlite.Database, to: string): void {
  // Recovery of the log is finished by now, and the copy only reads this database.
  sqlite.pragma("synchronous = OFF");
  try {
    sqlite.prepare("vacuum into ?").run(to);
  } finally {
    sqlite.pragma("synchronous = FULL");
  }
}

/**
 * Returns a function to call before a transaction, with whether its commit is to be synced. An unsynced commit survives
 * the end of this process, and is synced by the next synced one and by every checkpoint; a power cut before that loses
 * it.
 */
export function syncSwitch(sqlite: Sqlite.Database): (synced: boolean) => void {
  let is_on = true;
  return (synced) => {
    if (synced === is_on) return;
    // Not a prepared statement: SQLite applies this pragma when it compiles it.
    sqlite.pragma(synced ? "synchronous = FULL" : "synchronous = NORMAL");
    is_on = synced;
  };
}
