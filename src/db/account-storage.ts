import { sql } from "kysely";
import { databasePath } from "./database-path.ts";
import { createWorkerPool } from "../lib/worker-pool.ts";
import type { Db, Write } from "./group-commit.ts";
import { prepared } from "./prepared.ts";
import { STORED_SUM } from "./stored-sum.ts";

const COUNT_MS = 60_000;

interface Counted {
  db: Db;
  write: Write;
  config: { database: { url: string } };
  now: () => number;
}

/**
 * Recounts the bytes that an account stores and corrects `account_storage`. The triggers keep that count right unless
 * somebody edited the database by hand. A large account takes a second to sum up, so another process does it; what is
 * written meanwhile is added by the triggers.
 */
export async function recountStorage({ db, write, config, now }: Counted, user_id: string): Promise<void> {
  const path = databasePath(config.database.url);
  const wrong = path === ":memory:" ? await wrongHere(db, user_id) : await wrongBy(path, user_id);
  await write((tx) => correct(tx, { user_id, wrong, now: now() }));
}

async function wrongBy(path: string, user_id: string): Promise<number> {
  await using pool = createWorkerPool<number>("db/recount-worker.ts");
  const outcome = await pool.run({ path, user_id }, COUNT_MS);
  if (!outcome.ok) throw new Error(`What an account stores could not be counted (${outcome.problem})`);
  return outcome.output;
}

/** Counts on this thread: a database in memory cannot be opened by another process. */
async function wrongHere(db: Db, user_id: string): Promise<number> {
  const row = await db
    .selectFrom("account_storage")
    .select(sql<number>`${sql.raw(STORED_SUM)} - bytes`.as("wrong"))
    .where("user_id", "=", user_id)
    .executeTakeFirst();
  return row?.wrong ?? 0;
}

const correct = prepared((db, { user_id, wrong, now }: { user_id: string; wrong: number; now: number }) =>
  db
    .updateTable("account_storage")
    .set((eb) => ({ bytes: eb("bytes", "+", wrong), counted_at: now }))
    .where("user_id", "=", user_id),
);

/** Returns the id of the account whose last recount is the longest ago. */
export async function longestUncounted(db: Db): Promise<string | undefined> {
  const rows = db.selectFrom("account_storage").select("user_id").orderBy("counted_at").limit(1);
  return (await rows.executeTakeFirst())?.user_id;
}

/** Bytes that an account stores. Triggers keep the count, see `storage-triggers.ts`. */
export const storedBytes = prepared((db, key: { user_id: string }) =>
  db.selectFrom("account_storage").select("bytes").where("user_id", "=", key.user_id),
);
