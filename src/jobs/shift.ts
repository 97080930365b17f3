import { setTimeout as sleep } from "node:timers/promises";
import type { SqlBool } from "kysely";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { restBusy } from "../lib/busy.ts";
import { eraseLater, eraseRangesLater, sweepLater } from "./erase.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** How long one transaction of a long deletion may block everybody else; its commit comes on top. */
const TURN_MS = 8;
/** Pause after each such transaction, for everybody else. */
const BREATH_MS = 8;
/** From when on a transaction, which ends with a whole step, counts as long: the words of one message may take a tenth of a second. */
const LONG_MS = 32;
/** How many times as long as a transaction was too long is rested besides: while the server does something else, and while not. */
const REST = { busy: 4, idle: 2 };
const MAX_REST_MS = 3_000;
/** How long one job works on a long deletion before it starts again as a new job, well within its lease. */
const SHIFT_SECONDS = 600;

/** Deletes some rows, and adds their ranges in the segments to `ranges`. Returns false when no rows are left. */
export type Step = (tx: Db, ranges: SegmentRange[]) => Promise<boolean>;

/**
 * Returns a step that visits rows in order, `rows` at a time, and removes those with `ended`. `find` gets the last row
 * visited, so that each row that stays is visited only once.
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

/** The time slice (shift) of one job for a long deletion or change. */
export interface Shift {
  app: App;
  signal: AbortSignal;
  until: number;
}

export function beginShift(app: App, signal: AbortSignal): Shift {
  return { app, signal, until: app.steadyNow() + SHIFT_SECONDS };
}

/** Returns a shift without end, for callers that wait until all is done. */
export function endlessShift(app: App): Shift {
  return { app, signal: new AbortController().signal, until: Number.POSITIVE_INFINITY };
}

/** Returns the first half of what is left of a shift. */
export function halfOf(shift: Shift): Shift {
  const now = shift.app.steadyNow();
  return { ...shift, until: now + Math.max(0, shift.until - now) / 2 };
}

export function isOver(shift: Shift): boolean {
  return shift.app.steadyNow() >= shift.until;
}

/** Repeats a step until nothing is left to do or the shift is over, in short transactions with pauses for others. */
export async function takeTurns(shift: Shift, step: Step): Promise<void> {
  const { app, signal } = shift;
  let busy = false;
  while (!isOver(shift)) {
    signal.throwIfAborted();
    const { more, took } = await app.write((tx) => oneTurn(app, tx, step));
    if (!more) return;
    await app.upkeep.copyLogBack();
    const beyond = Math.max(0, took - LONG_MS) * (busy ? REST.busy : REST.idle);
    const rest = Math.min(MAX_REST_MS, BREATH_MS + beyond);
    busy = await restBusy(() => sleep(rest, undefined, { signal }).catch(() => undefined));
  }
}

/** Repeats a step until its time is over, or nothing is left to do. `took`: for how long everybody else had to wait. */
async function oneTurn(app: App, tx: Db, step: Step): Promise<{ more: boolean; took: number }> {
  const began = performance.now();
  const ranges: SegmentRange[] = [];
  let more = true;
  while (more && performance.now() - began < TURN_MS) more = await step(tx, ranges);
  await eraseRangesLater(app, tx, ranges);
  return { more, took: performance.now() - began };
}

/** Returns freed space to the disk, and empties the database's log of what was deleted. */
export async function tidyUp(shift: Shift): Promise<void> {
  await takeTurns(shift, async () => shift.app.upkeep.giveBackSpace());
  await shift.app.write(async (tx) => {
    await eraseLater(shift.app, tx, []);
    await sweepLater(shift.app, tx);
  });
}
