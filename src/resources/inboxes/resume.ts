import type { App } from "../../app.ts";
import type { InboxRow } from "../../db/schema.ts";
import { resumeSome, setAside } from "../../jobs/paused.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { beginShift, isOver, takeTurns } from "../../jobs/shift.ts";
import { inboxById } from "./inboxes.ts";

/** Jobs in one step. */
const ROWS = 50;

/** Puts a job aside if its inbox is paused; false where it goes on meanwhile. */
export async function waitIfPaused(
  app: App,
  job: Job<"route_message">,
  { id }: Pick<InboxRow, "id">,
): Promise<boolean> {
  return app.write(async (tx) => {
    // Here and not before: what is put aside once the inbox goes on would wait for ever.
    const [inbox] = await inboxById(tx, { id });
    if (!inbox || inbox.paused === null) return false;
    await setAside(tx, job, id);
    return true;
  });
}

/** Has everything go on that waited for an inbox, in its order, some at a time; it stops where the inbox is paused anew. */
export async function resumeInboxNow(app: App, job: Job<"resume_inbox">, signal: AbortSignal): Promise<void> {
  const { inbox_id } = job.payload;
  const shift = beginShift(app, signal);
  await takeTurns(shift, async (tx) => {
    const [inbox] = await inboxById(tx, { id: inbox_id });
    if (inbox && inbox.paused !== null) return false;
    const resumed = await resumeSome(tx, inbox_id, ROWS);
    app.worker?.wake("route_message");
    return resumed === ROWS;
  });
  await writeOutcome(app, signal, (tx) =>
    isOver(shift) ? deferJob(tx, job, app.now()) : finishJob(tx, job),
  );
}
