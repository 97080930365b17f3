import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { jsonTexts } from "../db/json.ts";
import { prepared } from "../db/prepared.ts";
import type { JobKind } from "./kinds.ts";

/**
 * Moves the waiting job with a `dedupe_key` to `run_at` if it is planned for later. One that runs checks again by
 * itself.
 */
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

/** Makes these jobs due now if they wait for a later time. */
export async function hastenThese(app: App, { kind, ids }: { kind: JobKind; ids: string[] }): Promise<void> {
  await app.write((tx) => moveUpThese(tx, { ids: JSON.stringify(ids), now: app.now() }));
  app.worker?.wake(kind);
}

/** `ids`: a JSON array. */
const moveUpThese = prepared((db, { ids, now }: { ids: string; now: number }) =>
  db
    .updateTable("jobs")
    .set({ run_at: now })
    .where("id", "in", db.selectFrom(jsonTexts(ids).as("listed")).select("listed.value"))
    .where("status", "=", "pending")
    .where("run_at", ">", now),
);
