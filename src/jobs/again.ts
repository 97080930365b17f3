import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";

/** Starts a job again that was given up, with its attempts and failures at zero. */
export const beginAgain = prepared((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable("jobs")
    .set({ status: "pending", run_at: now, attempts: 0, failures: 0, last_error: null })
    .where("id", "=", id)
    .where("status", "=", "dead"),
);

/**
 * Makes a job that waits for its time due now, and returns it. This attempt is an extra one: if it fails, the job
 * counts no more failures than before.
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
