import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { lockMailBytes } from "../db/locks.ts";
import { namedIn } from "../db/segment-rows.ts";
import type { SegmentRange } from "../lib/segments.ts";
import { without } from "../lib/spans.ts";
import { deferJob, enqueue, finishJob, type Job } from "./queue.ts";
import { writeOutcome } from "./run-job.ts";
import { sweepFiles } from "./sweep.ts";

/** Of a job, so that one of them is done well within its lease. */
const MAX_RANGES = 500;
const AFTER_BACKUP_SECONDS = 60;

/**
 * Promises, in the transaction that deletes the rows, that what is left of them outside of the tables goes as well: the
 * bytes in the segments, and the rows themselves in the database's log.
 */
export async function eraseLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  await eraseRangesLater(app, tx, ranges.slice(MAX_RANGES));
  const payload = { ranges: ranges.slice(0, MAX_RANGES), log: true };
  await enqueue(app, tx, { kind: "erase_bytes", payload });
}

/** For one of many deletions in a row: the last one calls `eraseLater`, which does for the log of all. */
export async function eraseRangesLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  for (let start = 0; start < ranges.length; start += MAX_RANGES) {
    const payload = { ranges: ranges.slice(start, start + MAX_RANGES), log: false };
    await enqueue(app, tx, { kind: "erase_bytes", payload });
  }
}

/** Has all files of mails put in order, once whatever waits to be erased now is erased. */
export async function sweepLater(app: App, tx: Db): Promise<void> {
  const payload = { ranges: [], log: false, sweep: true };
  await enqueue(app, tx, { kind: "erase_bytes", payload, dedupe_key: "sweep" });
}

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
  {
    using lock = lockMailBytes(app.config.data.dir);
    if (!lock) return later();
    await app.segments.erase(await unnamed(app.db, ranges));
    if (log) await app.emptyLog();
  }
  if (sweep && !(await sweepFiles(app, signal))) return later();
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}
