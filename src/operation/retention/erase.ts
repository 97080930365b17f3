import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { lockMailBytes } from "../../db/locks.ts";
import { namedIn } from "../../db/segment-rows.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import type { SegmentRange } from "../../lib/segments.ts";
import { subtractSpans } from "../../lib/spans.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";
import { sweepFiles } from "./tidy-segments.ts";

const AFTER_BACKUP_SECONDS = 60;
/** How long a backup may keep deleted mail from being erased before the operator is told. */
const LONG_SECONDS = HOUR_SECONDS;
const WAITS_FOR_BACKUP = "a backup is being made: what is deleted meanwhile is erased after it";

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
  const later = (why: string | null = null) =>
    app.write((tx) => deferJob(tx, job, app.after(AFTER_BACKUP_SECONDS), why));
  // A client may still be downloading them.
  if (ranges.some((range) => app.lent.has(range))) return later();
  {
    using lock = lockMailBytes(app.config.data.dir);
    if (!lock) return later(WAITS_FOR_BACKUP);
    await app.segments.erase(await unnamed(app.db, ranges));
    if (log) await app.upkeep.emptyLog();
  }
  if (sweep && !(await sweepFiles(app, signal))) return later();
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}

/** A warning when deleted mail has not been erased for long because of a backup; undefined otherwise. */
export async function erasingWarning({ db, now }: App): Promise<string | undefined> {
  const { since } = await db
    .selectFrom("jobs")
    .select(({ fn }) => fn.min("created").as("since"))
    .where("kind", "=", "erase_bytes")
    .where("status", "=", "pending")
    .where("last_error", "=", WAITS_FOR_BACKUP)
    .where("created", "<=", now() - LONG_SECONDS)
    .executeTakeFirstOrThrow();
  // Without a row the least of them is null.
  if ((since as number | null) === null) return undefined;
  const minutes = Math.floor((now() - since) / 60);
  return `what was deleted has waited for ${minutes} minutes to be erased, because a backup is being made all that time. If none is meant to be, look for a \`mailwright backup\` that has come to a standstill, and end it: what waits is then erased within a minute.`;
}
