import Sqlite from "better-sqlite3";

declare const self: Worker;

let database: Sqlite.Database | undefined;

self.addEventListener("message", (event: MessageEvent<"checkpoint" | { path: string }>) => {
  if (event.data === "checkpoint") postMessage(database?.pragma("wal_checkpoint(PASSIVE)"));
  else database = new Sqlite(event.data.path, { timeout: 0 });
});
