import type Sqlite from "better-sqlite3";

/** Tells whether another process has written since it was asked last; throws what SQLite says against it. */
export function watchOthers(sqlite: Sqlite.Database): () => boolean {
  const dataVersion = sqlite.prepare("pragma data_version").pluck();
  let version: unknown;
  return () => {
    const before = version;
    version = dataVersion.get();
    return before !== undefined && before !== version;
  };
}
