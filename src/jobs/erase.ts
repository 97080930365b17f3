import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { SegmentRange } from "../lib/segments.ts";
import type { JobPayloads } from "./kinds.ts";
import { enqueue } from "./queue.ts";

/** Ranges that one job erases at the most: the job is then done well within its lease. */
const MAX_RANGES = 500;

/**
 * Promises, in the transaction that deletes the rows, that what is left of them outside of the tables goes as well: the
 * bytes in the segments, and the rows themselves in the database's log.
 */
export async function eraseLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  await eraseRangesLater(app, tx, ranges.slice(MAX_RANGES));
  const payload = { ranges: ranges.slice(0, MAX_RANGES), log: true };
  await enqueue(app, tx, { kind: "erase_bytes", payload });
}

/**
 * As `eraseLater`, for one of many deletions in a row, without the log: the last of them calls `eraseLater`, which
 * empties it for all.
 */
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

/** Enqueues the clearing away of a deleted inbox or endpoint that more rows name than can be deleted at once. */
export async function eraseRestLater(app: App, tx: Db, rest: JobPayloads["erase_rest"]): Promise<void> {
  const id = "inbox_id" in rest ? rest.inbox_id : rest.endpoint_id;
  await enqueue(app, tx, { kind: "erase_rest", payload: rest, dedupe_key: `rest ${id}` });
}
