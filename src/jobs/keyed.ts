import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";

/** A range of keys of jobs: what waits for the same thing stands together in it, in the order of its messages. */
export interface KeyRange {
  /** Greater than this. */
  from: string;
  below: string;
}

/** Finds one job of a range, whatever it does. */
export const anyKeyed = prepared((db, { from, below }: KeyRange) =>
  db.selectFrom("jobs").select("id").where("dedupe_key", ">", from).where("dedupe_key", "<", below).limit(1),
);

/** The ids of the first jobs of a range that are not under way, as a part of a statement. */
export function pendingKeyed(db: Db, { from, below, limit }: KeyRange & { limit: number }) {
  return db
    .selectFrom("jobs")
    .select("id")
    .where("dedupe_key", ">", from)
    .where("dedupe_key", "<", below)
    .where("status", "=", "pending")
    .orderBy("dedupe_key")
    .limit(limit);
}

/** Deletes the first jobs of a range that are not under way, and returns their keys. */
export const dropKeyed = prepared((db, range: KeyRange & { limit: number }) =>
  db.deleteFrom("jobs").where("id", "in", pendingKeyed(db, range)).returning("dedupe_key"),
);
