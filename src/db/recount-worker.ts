import { sayReady } from "../lib/worker-says.ts";
import { openSqlite } from "./open-sqlite.ts";
import { STORED_SUM } from "./stored-sum.ts";

declare const self: Worker;

/** Answers with the number of bytes by which the stored count of an account is wrong, read in one snapshot. */
self.addEventListener("message", ({ data }: MessageEvent<{ path: string; user_id: string }>) => {
  const database = openSqlite(data.path, { readonly: true });
  const wrong = database.prepare(`select ${STORED_SUM} - bytes from account_storage where user_id = ?`);
  postMessage(wrong.pluck().get(data.user_id) ?? 0);
  database.close();
});
sayReady();
