import { openSqlite } from "./open-sqlite.ts";
import { STORED_SUM } from "./stored-sum.ts";

declare const self: Worker;

/** Asked with the path of a database and an account; answers with how much its count is wrong by, at one moment. */
self.addEventListener("message", ({ data }: MessageEvent<{ path: string; user_id: string }>) => {
  const database = openSqlite(data.path, { readonly: true });
  const wrong = database.prepare(`select ${STORED_SUM} - bytes from account_storage where user_id = ?`);
  postMessage(wrong.pluck().get(data.user_id) ?? 0);
  database.close();
});
postMessage("ready");
