import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import { openSqlite } from "./open-sqlite.ts";

declare const self: Worker;

let database: Sqlite.Database | undefined;

/** Checkpoints the database whose path is posted. Answers null, or what went wrong. */
self.addEventListener("message", ({ data: path }: MessageEvent<string>) => {
  try {
    database ??= openSqlite(path, { timeout: 0 });
    database.pragma("wal_checkpoint(PASSIVE)");
    postMessage(null);
  } catch (error) {
    postMessage(messageOf(error));
  }
});
