import { answerEach } from "../lib/worker-says.ts";
import { openSqlite } from "./open-sqlite.ts";
import { STORED_SUM } from "./stored-sum.ts";

/** Answers with the number of bytes by which the stored count of an account is wrong, read in one snapshot. */
answerEach(async ({ path, user_id }: { path: string; user_id: string }) => {
  const database = openSqlite(path, { readonly: true });
  const wrong = database.prepare(`select ${STORED_SUM} - bytes from account_storage where user_id = ?`);
  const output = wrong.pluck().get(user_id) ?? 0;
  database.close();
  return { output };
});
