import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobKind } from "./kinds.ts";
import type { JobHandlers } from "./run-job.ts";

/** Clocks are set right by less all the time. */
const LEAP_SECONDS = 60;
/** No work that is not planned by its own handler needs to wait for longer than this. */
const LONGEST_WAIT_SECONDS = 2 * 86_400;

/**
 * Looks at the clock each time it is called: once it has been set back, what was to be done at a time of the former
 * clock is tried now, or planned anew. Too early costs one try; too late may be years.
 */
export function watchClock(app: App, handlers: JobHandlers): () => Promise<void> {
  const offset = (): number => app.now() - app.steadyNow();
  let known = offset();
  return async () => {
    const leap = offset() - known;
    known += leap;
    if (Math.abs(leap) <= LEAP_SECONDS) return;
    app.log.warn({ seconds: leap }, "the clock of this machine was set to another time");
    if (leap < 0) await app.write((tx) => planAnew(app, tx, { handlers, after: app.now() }));
    app.worker?.wakeAll();
  };
}

/** The same at a start, of which nobody knows what the clock was before: what lies too far ahead is tried now. */
export async function planAtStart(app: App, tx: Db, handlers: JobHandlers): Promise<void> {
  await planAnew(app, tx, { handlers, after: app.now() + LONGEST_WAIT_SECONDS });
}

async function planAnew(
  app: App,
  tx: Db,
  { handlers, after }: { handlers: JobHandlers; after: number },
): Promise<void> {
  const now = app.now();
  const planned = (Object.keys(handlers) as JobKind[]).filter((kind) => handlers[kind].plan);
  await tx
    .updateTable("jobs")
    .set({ run_at: now })
    .where("status", "=", "pending")
    .where("kind", "not in", planned)
    .where("run_at", ">", after)
    .execute();
  await tx
    .updateTable("webhook_deliveries")
    .set({ next_attempt_at: now })
    // For each endpoint there is an index of what waits; all deliveries are many.
    .where("endpoint_id", "in", tx.selectFrom("webhook_endpoints").select("id"))
    .where("status", "=", "pending")
    .where("next_attempt_at", ">", after)
    .execute();
  for (const kind of planned) await handlers[kind].plan?.(app, tx);
}
