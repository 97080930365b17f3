import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { SegmentRange } from "../lib/segments.ts";
import { enqueue, finishJob, type Job } from "./queue.ts";
import { writeOutcome } from "./run-job.ts";

/** Of a job, so that one of them is done well within its lease. */
const MAX_RANGES = 500;

/** Promises, in the transaction that deletes the rows which name them, that the bytes in the segments go as well. */
export async function eraseLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  for (let start = 0; start < ranges.length; start += MAX_RANGES)
    await enqueue(app, tx, {
      kind: "erase_bytes",
      payload: { ranges: ranges.slice(start, start + MAX_RANGES) },
    });
}

/** Done a second time it does no harm: a range is never given out again. */
export async function eraseNow(app: App, job: Job<"erase_bytes">, signal: AbortSignal): Promise<void> {
  await app.segments.erase(job.payload.ranges);
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}
