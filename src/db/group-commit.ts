import { type Kysely, sql } from "kysely";
import type { Schema } from "./schema.ts";

export type Db = Kysely<Schema>;

/** Runs `operation` in a transaction and resolves once it is committed and synced. */
export type Write = <T>(operation: (tx: Db) => Promise<T>) => Promise<T>;

/** Operations that may share one commit; more wait for the next. */
const MAX_OPERATIONS = 256;

interface Waiting {
  operation: (tx: Db) => Promise<unknown>;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Group commit: operations that are ready in the same tick share one transaction, and so one sync. Each runs
 * in its own savepoint: one that throws is undone alone. Nobody gets an answer before the commit.
 */
export function groupCommit(db: Db): Write {
  let waiting: Waiting[] = [];
  let scheduled = false;

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_OPERATIONS);
      waiting = waiting.slice(MAX_OPERATIONS);
      await commitBatch(db, batch);
    }
    scheduled = false;
  };

  return <T>(operation: (tx: Db) => Promise<T>) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ operation, resolve: resolve as (value: unknown) => void, reject });
      if (scheduled) return;
      scheduled = true;
      setImmediate(() => void flush());
    });
}

async function commitBatch(db: Db, batch: Waiting[]): Promise<void> {
  const answers: (() => void)[] = [];
  try {
    await db.transaction().execute(async (tx) => {
      for (const { operation, resolve, reject } of batch) {
        await sql`savepoint operation`.execute(tx);
        try {
          const value = await operation(tx);
          answers.push(() => resolve(value));
        } catch (error) {
          await sql`rollback to operation`.execute(tx);
          answers.push(() => reject(error));
        }
        await sql`release operation`.execute(tx);
      }
    });
    for (const answer of answers) answer();
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}
