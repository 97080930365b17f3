import type { App } from "../../app.ts";
import type { InboxRow } from "../../db/schema.ts";
import { resumeSome, setAside } from "../../jobs/paused.ts";
import { deferJob, finishJob, type Job, leaveKey } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { beginShift, isOver, takeTurns } from "../../jobs/shift.ts";
import { lookAtSome } from "../../jobs/waits.ts";
import { inboxById } from "./inboxes.ts";

/** Jobs that one step resumes. */
const ROWS = 50;

/** Puts a job aside if its inbox is paused. False if it is not paused any more. */
export async function waitIfPaused(
  app: App,
  job: Job<"route_message">,
  { id }: Pick<InboxRow, "id">,
): Promise<boolean> {
  return app.write(async (tx) => {
    // Looked at in the transaction: a job that is put aside after the pause has ended would wait for ever.
    const [inbox] = await inboxById(tx, { id });
    if (!inbox || inbox.paused === null) return false;
    await setAside(tx, job, id);
    return true;
  });
}

/**
 * Resumes the jobs that waited for an inbox, in their order, some at a time; stops if the inbox is paused again. What waits
 * by a rule is looked at anew.
 */
export async function resumeInboxNow(app: App, job: Job<"resume_inbox">, signal: AbortSignal): Promise<void> {
  const { inbox_id } = job.payload;
  await app.write((tx) => leaveKey(tx, job));
  const shift = beginShift(app, signal);
  await takeTurns(shift, async (tx) => {
    const [inbox] = await inboxById(tx, { id: inbox_id });
    if (inbox && inbox.paused !== null) return false;
    const resumed = await resumeSome(tx, inbox_id, ROWS);
    app.worker?.wake("route_message");
    return resumed === ROWS;
  });
  let after: string | undefined;
  await takeTurns(shift, async (tx) => {
    after = await lookAtSome(app, tx, { inbox_id, after });
    return after !== undefined;
  });
  await writeOutcome(app, signal, (tx) =>
    isOver(shift) ? deferJob(tx, job, app.now()) : finishJob(tx, job),
  );
}
