import Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";

declare const self: Worker;

let database: Sqlite.Database | undefined;

/** Asked with the path of the database; answers null, or what went wrong. */
self.addEventListener("message", ({ data: path }: MessageEvent<string>) => {
  try {
    database ??= new Sqlite(path, { timeout: 0 });
    database.pragma("wal_checkpoint(PASSIVE)");
    postMessage(null);
  } catch (error) {
    postMessage(messageOf(error));
  }
});
