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

/** Deletes the first jobs of a range that are not under way, and returns their keys. */
export const dropKeyed = prepared((db, { from, below, limit }: KeyRange & { limit: number }) =>
  db
    .deleteFrom("jobs")
    .where("id", "in", (eb) =>
      eb
        .selectFrom("jobs")
        .select("jobs.id")
        .where("dedupe_key", ">", from)
        .where("dedupe_key", "<", below)
        .where("status", "=", "pending")
        .orderBy("dedupe_key")
        .limit(limit),
    )
    .returning("dedupe_key"),
);
