import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { SegmentRange } from "../lib/segments.ts";
import type { JobPayloads } from "./kinds.ts";
import { enqueue } from "./queue.ts";

/** How many ranges one job erases at most, so that it finishes well within its lease. */
const MAX_RANGES = 500;

/**
 * Enqueues, in the transaction that deletes rows, the erasure of what remains outside of the tables: the bytes in the
 * segments, and the rows in the database's log.
 */
export async function eraseLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  await eraseRangesLater(app, tx, ranges.slice(MAX_RANGES));
  const payload = { ranges: ranges.slice(0, MAX_RANGES), log: true };
  await enqueue(app, tx, { kind: "erase_bytes", payload });
}

/**
 * Like `eraseLater`, for one of many deletions in a row, without the log. The last of them calls `eraseLater`, which
 * empties the log for all.
 */
export async function eraseRangesLater(app: App, tx: Db, ranges: SegmentRange[]): Promise<void> {
  for (let start = 0; start < ranges.length; start += MAX_RANGES) {
    const payload = { ranges: ranges.slice(start, start + MAX_RANGES), log: false };
    await enqueue(app, tx, { kind: "erase_bytes", payload });
  }
}

/** Enqueues a sweep of all mail files, after what waits to be erased. */
export async function sweepLater(app: App, tx: Db): Promise<void> {
  const payload = { ranges: [], log: false, sweep: true };
  await enqueue(app, tx, { kind: "erase_bytes", payload, dedupe_key: "sweep" });
}

/** Enqueues the deletion of rows that belong to a deleted inbox or endpoint and are too many for one transaction. */
export async function eraseRestLater(app: App, tx: Db, rest: JobPayloads["erase_rest"]): Promise<void> {
  const id = "inbox_id" in rest ? rest.inbox_id : rest.endpoint_id;
  await enqueue(app, tx, { kind: "erase_rest", payload: rest, dedupe_key: `rest ${id}` });
}
