import type { App, RunEnd } from "../app.ts";
import { toldIfFull } from "../resources/billing/notices.ts";
import { type Db, tryWriting } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { isHeld } from "../jobs/holds.ts";
import type { Job } from "../jobs/queue.ts";
import { runUse } from "../resources/messages/run-use.ts";

/**
 * Accepts a message in one transaction, with a slot of the worker held for it where one is free and `wanted`. The
 * slot, for a run on so many `bytes`, goes back unless `accept` claimed a job for it, which `awaitEnd` then runs here and now.
 * Whoever waits for such a run is promised nothing before its end, whose commit is synced: so this one need not be.
 */
export async function acceptInline<Accepted extends { job: Job | null }>(
  app: App,
  { user, wanted, bytes }: { user: UserRow; wanted: boolean; bytes: number },
  accept: (tx: Db, slot: boolean) => Promise<Accepted>,
): Promise<Accepted> {
  const use = runUse(app, user, { bytes });
  const slot = wanted && (app.worker?.reserve("route_message", use) ?? false);
  let job: Job | null = null;
  try {
    const accepted = await app.write((tx) => accept(tx, slot), { promises: !slot });
    // Only now: a commit that failed must not leave the slot taken for ever.
    job = accepted.job;
    if (slot && job === null) await promise(app);
    return accepted;
  } catch (error) {
    throw await toldIfFull(app, user, error);
  } finally {
    if (slot && job === null) app.worker?.release("route_message", use);
  }
}

/**
 * Past `ms` the run goes on under its lease; only this wait ends. A message without a job waits for the worker, and is
 * not waited for while the operator holds it. Returns what came of a run that ended in this time.
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
  if (job) await promise(app);
  return undefined;
}

/** Has everything that was committed before it outlive a power cut. */
export async function promise(app: App): Promise<void> {
  await app.write(tryWriting);
}
