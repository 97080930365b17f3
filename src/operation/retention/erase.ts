import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { lockMailBytes } from "../../db/locks.ts";
import { namedIn } from "../../db/segment-rows.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import type { SegmentRange } from "../../lib/segments.ts";
import { subtractSpans } from "../../lib/spans.ts";
import { sweepFiles } from "./tidy-segments.ts";

const AFTER_BACKUP_SECONDS = 60;

/**
 * Returns the parts of deleted ranges that no row references: after a loss of files, earlier versions gave some ranges
 * to two rows.
 */
async function unnamed(db: Db, ranges: SegmentRange[]): Promise<SegmentRange[]> {
  const free: SegmentRange[] = [];
  for (const [segment, inSegment] of Map.groupBy(ranges, (range) => range.segment)) {
    const left = subtractSpans(inSegment, await namedIn(db, segment));
    for (const { offset, size } of left) free.push({ segment, offset, size });
  }
  return free;
}

/** Erases the ranges of a job. Repeating it is harmless, because no range is ever used again. */
export async function eraseNow(app: App, job: Job<"erase_bytes">, signal: AbortSignal): Promise<void> {
  const { ranges, log = true, sweep = false } = job.payload;
  // A backup in progress may reference the ranges: what is in its snapshot must be in its archive.
  const later = () => app.write((tx) => deferJob(tx, job, app.after(AFTER_BACKUP_SECONDS)));
  // A client may still be downloading them.
  if (ranges.some((range) => app.lent.has(range))) return later();
  {
    using lock = lockMailBytes(app.config.data.dir);
    if (!lock) return later();
    await app.segments.erase(await unnamed(app.db, ranges));
    if (log) await app.upkeep.emptyLog();
  }
  if (sweep && !(await sweepFiles(app, signal))) return later();
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}
