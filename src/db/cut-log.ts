import type Sqlite from "better-sqlite3";

/** How long SQLite blocks the thread for a lock. Short, because `openKysely` waits for the transactions of others without blocking. */
export const BUSY_TIMEOUT_MS = 10;

/**
 * Copies the whole log back into the database and empties it, both synced. Returns false while another process or thread
 * uses the log. Throws SQLite's errors.
 */
export function cutLog(sqlite: Sqlite.Database): boolean {
  // Waiting here would block every request; the caller tries again later.
  sqlite.pragma("busy_timeout = 0");
  try {
    const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
    return outcome?.busy === 0;
  } finally {
    sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}
