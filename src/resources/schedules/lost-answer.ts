import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { MAX_FAILURES, pauseSchedule, readAgain } from "./run-ends.ts";
import { scheduleById } from "./view.ts";

/**
 * Notes on a schedule that the answer of a run did not arrive: what a digest had read is read again by the next run, and a
 * schedule of which nobody gets the answers pauses.
 */
export async function settleLostNow(app: App, job: Job<"settle_lost">, signal: AbortSignal): Promise<void> {
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    const lost = await lostRun(tx, job.payload.outgoing_id);
    if (lost?.schedule_id == null) return;
    const { schedule_id, read_from, id, response } = lost;
    if (read_from !== null) await readAgain(tx, { id: schedule_id, message_id: id, read_from });
    const [schedule] = await scheduleById(tx, { id: schedule_id });
    if (!schedule || schedule.status !== "active" || !(await areAllLost(tx, schedule_id))) return;
    const why = `The answers of ${MAX_FAILURES} runs in a row did not arrive, the last one so: ${response ?? ""}`;
    await pauseSchedule(app, tx, schedule, why);
  });
}

/** The run whose answer a mail is; undefined where that has been sent again meanwhile, or is gone. */
function lostRun(tx: Db, outgoing_id: string) {
  return tx
    .selectFrom("outgoing_mails")
    .innerJoin("messages", "messages.id", "outgoing_mails.message_id")
    .select(["messages.id", "messages.schedule_id", "messages.read_from", "outgoing_mails.response"])
    .where("outgoing_mails.id", "=", outgoing_id)
    .where("outgoing_mails.status", "in", ["bounced", "suppressed"])
    .executeTakeFirst();
}

/**
 * Whether the last answers of a schedule of which it is known were all lost: those of newer runs may still be put off. Runs that
 * answer nobody, as digests of nothing, do not count.
 */
async function areAllLost(tx: Db, schedule_id: string): Promise<boolean> {
  const runs = await tx
    .selectFrom("messages")
    .select("reply_status")
    .where("schedule_id", "=", schedule_id)
    .where("reply_status", "in", ["sent", "bounced", "suppressed"])
    .orderBy("id", "desc")
    .limit(MAX_FAILURES)
    .execute();
  return runs.length === MAX_FAILURES && runs.every(({ reply_status }) => reply_status !== "sent");
}
