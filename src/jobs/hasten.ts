import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobKind } from "./kinds.ts";

/** Has the job with a `dedupe_key`, if it waits, run at `run_at` at the latest. One that runs looks again by itself. */
export async function hasten(
  app: App,
  tx: Db,
  due: { kind: JobKind; dedupe_key: string; run_at: number },
): Promise<void> {
  await moveUp(tx, { dedupe_key: due.dedupe_key, run_at: due.run_at });
  app.worker?.wake(due.kind);
}

const moveUp = prepared((db, due: { dedupe_key: string; run_at: number }) =>
  db
    .updateTable("jobs")
    .set({ run_at: due.run_at })
    .where("dedupe_key", "=", due.dedupe_key)
    .where("status", "=", "pending")
    .where("run_at", ">", due.run_at),
);
