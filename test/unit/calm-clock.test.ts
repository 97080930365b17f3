import { expect, test } from "bun:test";
import { createCalmClock, type KeptTime } from "../../src/lib/calm-clock.ts";
import { createOrderedIds } from "../../src/lib/ordered-ids.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 15, 12);

/** A machine whose clock somebody sets, and how long it has been running. */
function machine(kept?: KeptTime) {
  let wall = START;
  let steady = 1_000;
  const clock = createCalmClock({ wallMs: () => wall, steadyMs: () => steady, kept });
  return {
    clock,
    pass(ms: number) {
      wall += ms;
      steady += ms;
    },
    leap: (ms: number) => void (wall += ms),
    /** How far the calm clock is from where it was. */
    passed: () => clock.nowMs() - START,
  };
}

test.each([9 * DAY, -5 * HOUR, 3_650 * DAY])(
  "a leap of %p ms is believed once it has stayed for an hour",
  (leap) => {
    const m = machine();
    m.leap(leap);
    expect(m.clock.doubtSeconds()).toBe(leap / 1_000);
    m.pass(59 * MINUTE);
    expect(m.passed()).toBe(59 * MINUTE);
    m.pass(MINUTE);
    expect(m.passed()).toBe(HOUR + leap);
    expect(m.clock.doubtSeconds()).toBeUndefined();
  },
);

test("one that leaps back within the hour was never believed, and each leap has an hour of its own", () => {
  const m = machine();
  m.leap(9 * DAY);
  m.clock.nowMs();
  m.pass(50 * MINUTE);
  m.leap(DAY);
  expect(m.passed()).toBe(50 * MINUTE);
  m.pass(50 * MINUTE);
  expect(m.passed()).toBe(100 * MINUTE);
  m.leap(-10 * DAY);
  expect(m.passed()).toBe(100 * MINUTE);
  expect(m.clock.doubtSeconds()).toBeUndefined();
});

test("what a clock is usually set right by is believed at once", () => {
  const m = machine();
  m.leap(-9 * MINUTE);
  expect(m.passed()).toBe(-9 * MINUTE);
});

test.each([
  ["of a night", 10 * HOUR, 10 * HOUR],
  ["of a day", DAY, 0],
  ["that ends before it began", -5 * HOUR, 0],
])("a standstill %s", (_claim, gap, believed) => {
  const kept = { calm_ms: START - gap, wall_ms: START - gap };
  const m = machine(kept);
  expect(m.clock.nowMs() - kept.calm_ms).toBe(believed);
  m.pass(HOUR);
  expect(m.passed()).toBe(HOUR);
});

test("a doubt outlasts a restart", () => {
  const first = machine();
  first.leap(9 * DAY);
  first.pass(50 * MINUTE);
  const kept = first.clock.kept();
  expect(kept.wall_ms - kept.calm_ms).toBe(9 * DAY);
  const second = machine({ calm_ms: START - 9 * DAY, wall_ms: START });
  expect(second.clock.doubtSeconds()).toBe((9 * DAY) / 1_000);
});

test("ids are in the order in which they are made, however the clock is set, and of the moment they tell", () => {
  let wall = START;
  const ids = createOrderedIds({ wallMs: () => wall, steadyMs: () => 0, last_ms: START - 1 });
  const made: string[] = [];
  const moments: number[] = [];
  for (const leap of [0, 5, -5 * HOUR, 0, DAY, -DAY, 1]) {
    wall += leap;
    for (let count = 0; count < 5_000; count += 1) made.push(ids.next());
    moments.push(ids.nowMs());
  }
  expect(made).toEqual(made.toSorted());
  expect(new Set(made).size).toBe(made.length);
  for (const id of made)
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(moments).toEqual(moments.toSorted((one, other) => one - other));
  // One that was wrong by years is followed back.
  wall += 3_650 * DAY;
  ids.next();
  wall -= 3_650 * DAY;
  expect(ids.nowMs()).toBe(wall);
});

test("after a start they come behind the last ones before it", () => {
  const idAt = (wall: number, last_ms: number): string =>
    createOrderedIds({ wallMs: () => wall, steadyMs: () => 0, last_ms }).next();
  expect(idAt(START - HOUR, START) > idAt(START - 1, 0)).toBe(true);
});

test("on a clock that was set back they go on slowly, until it is as late again", () => {
  let passed = 0;
  const wallMs = (): number => START - 5 * HOUR + passed;
  const ids = createOrderedIds({ wallMs, steadyMs: () => passed, last_ms: START });
  for (const [hours, later] of [
    [1, 0.5],
    [4, 2],
    [9, 4.5],
    [10, 5],
    [11, 6],
  ] as const) {
    passed = hours * HOUR;
    expect(ids.nowMs() - START).toBe(later * HOUR);
  }
});

test.each([
  ["no more than", "go on", 0],
  ["more than", "follow it", 1],
])("a clock that was set back by %s a month: the ids %s", (_by, _what, more_ms) => {
  const back = 31 * DAY + more_ms;
  const ids = createOrderedIds({ wallMs: () => START - back, steadyMs: () => 0, last_ms: START });
  expect(ids.nowMs()).toBe(more_ms === 0 ? START : START - back);
});
