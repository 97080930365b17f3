import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { SegmentRange } from "../lib/segments.ts";
import { enqueue, finishJob, type Job } from "./queue.ts";
import { writeOutcome } from "./run-job.ts";

/** Of a job, so that one of them is done well within its lease. */
const MAX_RANGES = 500;

/**
 * Promises, in the transaction that deletes the rows, that what is left of them outside of the tables goes as well: the
 * bytes in the segments, and the rows themselves in the database's log.
 */
export async function eraseLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  let start = 0;
  do {
    const payload = { ranges: ranges.slice(start, start + MAX_RANGES) };
    await enqueue(app, tx, { kind: "erase_bytes", payload });
    start += MAX_RANGES;
  } while (start < ranges.length);
}

/** Done a second time it does no harm: a range is never given out again. */
export async function eraseNow(app: App, job: Job<"erase_bytes">, signal: AbortSignal): Promise<void> {
  await app.segments.erase(job.payload.ranges);
  await app.emptyLog();
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}
