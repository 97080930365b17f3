import type { SqlBool } from "kysely";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { eraseLater, eraseRangesLater, sweepLater } from "./erase.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** How long a transaction of a long deletion may hold everybody up; its commit comes on top. */
const TURN_MS = 8;
/** How long everybody else has the database to themselves after each. */
const BREATH_MS = 8;
/** Then the job begins anew, well before its lease ends. */
const SHIFT_SECONDS = 600;

/** Deletes some rows, and adds where in the segments they had bytes; false when there are no more of them. */
export type Step = (tx: Db, ranges: SegmentRange[]) => Promise<boolean>;

/**
 * Goes through rows in their order, so many at a time, and removes those that have `ended`: `find` gets the last one that
 * was looked at, so that what has to stay is looked at once, however much of it there is.
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

/** The time that there is for a long deletion, or a long change. */
export interface Shift {
  app: App;
  signal: AbortSignal;
  until: number;
}

export function beginShift(app: App, signal: AbortSignal): Shift {
  return { app, signal, until: app.steadyNow() + SHIFT_SECONDS };
}

/** For whoever waits for the end of it. */
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

/** Gives the space back to the disk, and has the log forget what was deleted. */
export async function tidyUp(shift: Shift): Promise<void> {
  await takeTurns(shift, async () => shift.app.upkeep.giveBackSpace());
  await shift.app.write(async (tx) => {
    await eraseLater(shift.app, tx, []);
    await sweepLater(shift.app, tx);
  });
}
