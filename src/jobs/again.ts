import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";

/** Has a job begin anew that was given up, with nothing counted. */
export const beginAgain = prepared((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable("jobs")
    .set({ status: "pending", run_at: now, attempts: 0, failures: 0, last_error: null })
    .where("id", "=", id)
    .where("status", "=", "dead"),
);

/**
 * Has a job that waits for its time tried now, and returns it. Such a try is one more: should it fail, no failure is counted
 * besides those before it.
 */
export async function tryAgainNow(
  tx: Db,
  { id, now }: { id: string; now: number },
): Promise<JobRow | undefined> {
  return tx
    .updateTable("jobs")
    .set((eb) => ({
      run_at: now,
      attempts: eb("attempts", "-", eb.fn<number>("min", ["failures", eb.val(1)])),
      failures: eb.fn<number>("max", [eb("failures", "-", 1), eb.val(0)]),
    }))
    .where("id", "=", id)
    .where("status", "=", "pending")
    .where("run_at", ">", now)
    .returningAll()
    .executeTakeFirst();
}
