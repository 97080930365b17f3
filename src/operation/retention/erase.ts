import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { lockMailBytes } from "../../db/locks.ts";
import { namedIn } from "../../db/segment-rows.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import type { SegmentRange } from "../../lib/segments.ts";
import { without } from "../../lib/spans.ts";
import { sweepFiles } from "./tidy-segments.ts";

const AFTER_BACKUP_SECONDS = 60;

/** The parts of what was deleted that no other row names: after a loss, earlier versions gave some bytes to two. */
async function unnamed(db: Db, ranges: SegmentRange[]): Promise<SegmentRange[]> {
  const free: SegmentRange[] = [];
  for (const [segment, inSegment] of Map.groupBy(ranges, (range) => range.segment)) {
    const left = without(inSegment, await namedIn(db, segment));
    for (const { offset, size } of left) free.push({ segment, offset, size });
  }
  return free;
}

/** Done a second time it does no harm: a range is never given out again. */
export async function eraseNow(app: App, job: Job<"erase_bytes">, signal: AbortSignal): Promise<void> {
  const { ranges, log = true, sweep = false } = job.payload;
  // A backup copies them, and may name them: what was in its snapshot must be in its archive.
  const later = () => app.write((tx) => deferJob(tx, job, app.after(AFTER_BACKUP_SECONDS)));
  // Somebody may still be taking them.
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
