import type { App, RunEnd } from "../app.ts";
import { toldIfFull } from "../resources/billing/notices.ts";
import { isLong } from "../db/long-bytes.ts";
import { type Db, tryWriting } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { isHeld } from "../jobs/holds.ts";
import type { Job } from "../jobs/queue.ts";
import { runUse } from "../resources/messages/run-use.ts";

/**
 * Accepts a message in one transaction and, if `wanted`, holds a slot of the worker for it where one is free. The slot,
 * for a run on `bytes` bytes, is released unless `accept` claimed a job for it, which `awaitEnd` then runs at once. The
 * commit of such a message need not be synced: whoever waits for the run is promised nothing before its end, whose
 * commit is.
 */
export async function acceptInline<Accepted extends { job: Job | null }>(
  app: App,
  { user, wanted, bytes, stores }: { user: UserRow; wanted: boolean; bytes: number; stores: Uint8Array[] },
  accept: (tx: Db, slot: boolean) => Promise<Accepted>,
): Promise<Accepted> {
  // Before anything is written for it.
  if (stores.some(isLong)) app.refuseIntake();
  const use = runUse(app, user, { bytes });
  const slot = wanted && (app.worker?.reserve("route_message", use) ?? false);
  let job: Job | null = null;
  try {
    const accepted = await app.write((tx) => accept(tx, slot), { promises: !slot, stores });
    // Only after the commit: one that failed must not leave the slot taken for ever.
    job = accepted.job;
    if (slot && job === null) await syncCommits(app);
    return accepted;
  } catch (error) {
    throw await toldIfFull(app, user, error);
  } finally {
    if (slot && job === null) app.worker?.release("route_message", use);
  }
}

/**
 * Waits up to `ms` for the end of a run; after that only the wait ends, and the run goes on under its lease. A message
 * without a job waits for the worker, and is not waited for while the operator holds it. Returns the outcome of a run
 * that ended in this time.
 */
export async function awaitEnd(
  app: App,
  message_id: string,
  { job, ms }: { job: Job | null; ms: number },
): Promise<RunEnd | undefined> {
  const ended = ms > 0 ? app.finished.wait(message_id, ms) : undefined;
  if (job) app.worker?.run(job);
  else if (ended && (await isHeld(app.db, "route_message"))) return undefined;
  const news = await ended;
  if (typeof news === "object") return news;
  if (job) await syncCommits(app);
  return undefined;
}

/** Makes everything that was committed before survive a power cut: an empty write, whose commit is synced. */
export async function syncCommits(app: App): Promise<void> {
  await app.write(tryWriting);
}
