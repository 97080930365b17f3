import type Sqlite from "better-sqlite3";

/** Returns a function that tells whether another process has written since its last call. It throws SQLite's errors. */
export function watchOthers(sqlite: Sqlite.Database): () => boolean {
  const dataVersion = sqlite.prepare("pragma data_version").pluck();
  let version: unknown;
  return () => {
    const before = version;
    version = dataVersion.get();
    return before !== undefined && before !== version;
  };
}
