import type { SqlBool } from "kysely";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { eraseLater, eraseRangesLater, sweepLater } from "./erase.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** How long one transaction of a long deletion may hold everybody up; its commit comes on top. */
const TURN_MS = 8;
/** How long everybody else has the database to themselves after each such transaction. */
const BREATH_MS = 8;
/** How long one job works on it. Then the job begins anew, well before its lease ends. */
const SHIFT_SECONDS = 600;

/** Deletes some rows, and adds to `ranges` where in the segments they had bytes; false when no rows are left. */
export type Step = (tx: Db, ranges: SegmentRange[]) => Promise<boolean>;

/**
 * Returns a step that goes through rows in their order, `rows` at a time, and removes those that have `ended`. `find`
 * is given the last row that was looked at, so that each row that has to stay is looked at only once.
 */
export function goThrough<Row extends { ended: SqlBool }>(
  rows: number,
  find: (tx: Db, last: Row | undefined) => Promise<Row[]>,
  remove: (tx: Db, ended: Row[], ranges: SegmentRange[]) => Promise<unknown>,
): Step {
  let last: Row | undefined;
  return async (tx, ranges) => {
    const found = await find(tx, last);
    last = found.at(-1);
    await remove(
      tx,
      found.filter(({ ended }) => Boolean(ended)),
      ranges,
    );
    return found.length === rows;
  };
}

/** The time that one job has for a long deletion, or a long change. */
export interface Shift {
  app: App;
  signal: AbortSignal;
  until: number;
}

export function beginShift(app: App, signal: AbortSignal): Shift {
  return { app, signal, until: app.steadyNow() + SHIFT_SECONDS };
}

/** A shift without end, for callers that wait until all is done. */
export function endlessShift(app: App): Shift {
  return { app, signal: new AbortController().signal, until: Number.POSITIVE_INFINITY };
}

export function isOver(shift: Shift): boolean {
  return shift.app.steadyNow() >= shift.until;
}

/** Takes a step as often as there is something to do, in short transactions: others have their turn in between. */
export async function takeTurns(shift: Shift, step: Step): Promise<void> {
  const { app, signal } = shift;
  while (!isOver(shift)) {
    signal.throwIfAborted();
    const more = await app.write(async (tx) => {
      const ends = performance.now() + TURN_MS;
      const ranges: SegmentRange[] = [];
      let again = true;
      while (again && performance.now() < ends) again = await step(tx, ranges);
      await eraseRangesLater(app, tx, ranges);
      return again;
    });
    if (!more) return;
    await app.upkeep.copyLogBack();
    await Bun.sleep(BREATH_MS);
  }
}

/** Returns freed space to the disk, and makes the database's log forget what was deleted. */
export async function tidyUp(shift: Shift): Promise<void> {
  await takeTurns(shift, async () => shift.app.upkeep.giveBackSpace());
  await shift.app.write(async (tx) => {
    await eraseLater(shift.app, tx, []);
    await sweepLater(shift.app, tx);
  });
}
