import { describe, expect, test } from "bun:test";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { readEvery } from "../../src/resources/schedules/every.ts";
import { readMoment, readZone } from "../../src/resources/schedules/moments.ts";
import { momentWords, patternWords } from "../../src/resources/schedules/shown-times.ts";
import { timesFor } from "../../src/resources/schedules/times-for.ts";
import { timesAfter } from "../../src/resources/schedules/times.ts";

const BERLIN = "Europe/Berlin";
/** A Wednesday, 10:20 in Berlin. */
const NOW = Date.UTC(2026, 6, 15, 8, 20) / 1_000;

describe("what is typed as a repetition", () => {
  test.each([
    ["weekday 8:00", "0 8 * * 1-5"],
    ["weekdays at 8:00", "0 8 * * 1-5"],
    ["every weekday", "0 9 * * 1-5"],
    ["Daily", "0 9 * * *"],
    ["every day at 7:30pm", "30 19 * * *"],
    ["8:00", "0 8 * * *"],
    ["noon", "0 12 * * *"],
    ["12am", "0 0 * * *"],
    ["hourly", "0 * * * *"],
    ["@hourly", "0 * * * *"],
    ["every 6 hours", "0 */6 * * *"],
    ["monday 9:00", "0 9 * * 1"],
    ["Mon, Thu 9 am", "0 9 * * 1,4"],
    ["tuesdays and fridays 18:15", "15 18 * * 2,5"],
    ["mon-fri 8:00", "0 8 * * 1,2,3,4,5"],
    ["sat-mon", "0 9 * * 0,1,6"],
    ["weekend 10:00", "0 10 * * 6,0"],
    ["daily 8", "0 8 * * *"],
    ["every day at 17", "0 17 * * *"],
    ["every monday at 8", "0 8 * * 1"],
    ["tuesdays and fridays 18", "0 18 * * 2,5"],
    ["weekdays 0", "0 0 * * 1-5"],
    ["daily 24", undefined],
    ["weekly 3", undefined],
    ["weekly", "0 9 * * 1"],
    ["weekly friday 16:00", "0 16 * * 5"],
    ["monthly", "0 9 1 * *"],
    ["monthly 15 8:00", "0 8 15 * *"],
    ["monthly 3rd", "0 9 3 * *"],
    ["monthly 31", "0 9 L * *"],
    ["last day of the month 17:00", "0 17 L * *"],
    ["quarterly", "0 9 1 1,4,7,10 *"],
    ["yearly", "0 9 1 1 *"],
    ["yearly 24 december 18:00", "0 18 24 12 *"],
    ["*/5 * * * *", undefined],
    ["0,30 8 * * *", undefined],
    ["15 8 * * 1-5", "15 8 * * 1-5"],
    ["15 8 30 2 *", undefined],
    ["* * * * *", undefined],
    ["0 8 * * * *", undefined],
    ["every 5 hours", undefined],
    ["every 24 hours", undefined],
    ["monthly 32", undefined],
    ["25:00", undefined],
    ["8:60", undefined],
    ["8", undefined],
    ["8:00 9:00", undefined],
    ["jeden Werktag um 8", undefined],
    ["", undefined],
    [`0 8 * * ${"1,".repeat(200)}1`, undefined],
    ["constructor", undefined],
  ])("%p", (typed, pattern) => {
    expect(readEvery(typed)).toBe(pattern as string);
  });

  test("is said in words that mean the same", () => {
    const words = [
      "0 8 * * 1-5",
      "0 9 L * *",
      "0 * * * *",
      "0 */6 * * *",
      "5 9 * * 1,4",
      "0 9 1 * *",
      "7 8-10 * * *",
    ];
    expect(words.map(patternWords)).toEqual([
      "every weekday at 08:00",
      "on the last day of every month at 09:00",
      "every hour",
      "every 6 hours",
      "every Monday and Thursday at 09:05",
      "on day 1 of every month at 09:00",
      'by the pattern "7 8-10 * * *"',
    ]);
  });
});

describe("what is typed as a single time", () => {
  test.each([
    ["tomorrow 9:00", "2026-07-16T09:00"],
    ["tomorrow", "2026-07-16T09:00"],
    ["today 18:00", "2026-07-15T18:00"],
    ["day after tomorrow 8pm", "2026-07-17T20:00"],
    ["in 3 days", "2026-07-18T10:20"],
    ["in an hour", "2026-07-15T11:20"],
    ["in 2 weeks", "2026-07-29T10:20"],
    ["in 5 months", "2026-12-15T10:20"],
    ["friday 17:00", "2026-07-17T17:00"],
    ["wednesday 9:00", "2026-07-22T09:00"],
    ["wednesday 11:00", "2026-07-15T11:00"],
    ["next wednesday 11:00", "2026-07-22T11:00"],
    ["on Friday at 5pm", "2026-07-17T17:00"],
    ["11:00", "2026-07-15T11:00"],
    ["10:00", "2026-07-16T10:00"],
    ["24 december", "2026-12-24T09:00"],
    ["march 3 8:00", "2027-03-03T08:00"],
    ["24 dec 2028 10:00", "2028-12-24T10:00"],
    ["2026-12-24", "2026-12-24T09:00"],
    ["2026-12-24 7:05", "2026-12-24T07:05"],
    ["2026-12-24T07:05:30", "2026-12-24T07:05"],
  ])("%p", (typed, local) => {
    const found = readMoment(typed, { now: NOW, timezone: BERLIN }) ?? 0;
    const said = new Date(found * 1_000).toLocaleString("sv-SE", { timeZone: BERLIN });
    expect(said.replace(" ", "T").slice(0, local.length)).toBe(local);
  });

  test("with its own offset is the same everywhere", () => {
    for (const timezone of [BERLIN, "Asia/Kolkata"])
      for (const typed of ["2026-12-24T09:00Z", "2026-12-24 10:00+01:00", "2026-12-24T10:00+0100"])
        expect(readMoment(typed, { now: NOW, timezone })).toBe(Date.UTC(2026, 11, 24, 9) / 1_000);
  });

  test.each([
    "",
    "soon",
    "2026-02-30",
    "31 february",
    "2026-13-01",
    "in 0 days",
    "in 99999 days",
    "in 3 fortnights",
    "2026-12-24Z",
    "next",
    "tomorrow tomorrow",
    "x".repeat(5_000),
  ])("is not clear: %p", (typed) => {
    expect(readMoment(typed, { now: NOW, timezone: BERLIN })).toBeUndefined();
  });

  test("is the end of a day where it says how long something goes on", () => {
    const end = readMoment("2026-12-31", { now: NOW, timezone: BERLIN }, true);
    expect(end).toBe(Date.UTC(2026, 11, 31, 22, 59, 59) / 1_000);
  });

  test("is read in a zone, whatever its case", () => {
    expect([readZone("europe/berlin"), readZone("UTC"), readZone("Berlin"), readZone("")]).toEqual([
      BERLIN,
      "UTC",
      undefined,
      undefined,
    ]);
    expect(momentWords(NOW, BERLIN)).toBe("Wed, 15 Jul 2026, 10:20");
  });
});

describe("words that are clear, but no time of a schedule, are told why", () => {
  const why = (every?: string, at?: string) => {
    const read = timesFor({ every, at, tz: undefined, until: undefined }, { now: NOW, timezone: BERLIN });
    return "unclear" in read ? [read.unclear.code, read.unclear.message] : [];
  };

  test.each([
    ["*/5 * * * *", "too_often", "names more than one minute of an hour"],
    ["* * * * *", "too_often", "names more than one minute of an hour"],
    ["0,30 8 * * *", "too_often", "give its minute as one number"],
    [
      "90 minutes",
      "no_such_time",
      "“90 minutes” come at other times each day. Only 1, 2, 3, 4, 6, 8 or 12 hours do not.",
    ],
    ["30 minutes", "too_often", "“30 minutes” is too often: at least an hour lies between two runs."],
    ["every 10 minutes", "too_often", "at least an hour lies between two runs"],
    ["5min", "too_often", "at least an hour lies between two runs"],
    ["every minute", "too_often", "at least an hour lies between two runs"],
    ["every 5 hours", "no_such_time", "come at the same times each day"],
    [
      "2 weeks",
      "no_such_time",
      "“2 weeks” cannot be had: a schedule runs in every week, or on days of the month",
    ],
    ["every other week monday 9:00", "no_such_time", "cannot be had"],
    ["biweekly", "no_such_time", "cannot be had"],
    ["fortnightly 8:00", "no_such_time", "cannot be had"],
    ["15 8 30 2 *", "no_such_time", "never comes"],
    ["0 25 * * *", "no_such_time", "hour (0 to 23)"],
    ["yearly 30 february", "no_such_time", "There is no day “30 february”"],
    ["weekday 25:00", "no_such_time", "There is no time of day “25:00”"],
    ["daily 8:60", "no_such_time", "There is no time of day “8:60”"],
    ["now and then", "unclear_time", "It is not clear"],
    ["jede Stunde", "unclear_time", "It is not clear"],
    ["8:00 9:00", "unclear_time", "It is not clear"],
    ["x".repeat(5_000), "unclear_time", "It is not clear"],
  ])("every %p", (typed, code, message) => {
    expect(why(typed)).toEqual([code, expect.stringContaining(message)]);
  });

  test.each([
    ["2026-02-30 09:00", "no_such_time", "There is no day “2026-02-30” in the calendar."],
    ["2026-13-01", "no_such_time", "There is no day “2026-13-01”"],
    ["2026-12-24T25:00", "no_such_time", "There is no time of day “25:00”"],
    ["31 february", "no_such_time", "There is no day “31 february 2026”"],
    ["29 february 2027 8:00", "no_such_time", "There is no day “29 february 2027”"],
    ["tomorrow 25:00", "no_such_time", "There is no time of day “25:00”"],
    ["13pm", "no_such_time", "There is no time of day “13pm”"],
    ["yesterday 9:00", "in_the_past", "“yesterday 9:00” is in the past."],
    ["3 days ago", "in_the_past", "is in the past"],
    ["last friday", "in_the_past", "is in the past"],
    ["24.12.2026", "invalid_format", "write year, month and day"],
    ["soon", "unclear_time", "It is not clear"],
    ["2026-12-24Z", "unclear_time", "It is not clear"],
    ["tomorrow tomorrow", "unclear_time", "It is not clear"],
  ])("at %p", (typed, code, message) => {
    expect(why(undefined, typed)).toEqual([code, expect.stringContaining(message)]);
  });
});

test.each([
  ["24.12.2026", ["2026-12-24"]],
  ["3.1.2027 9:00", ["2027-01-03 9:00"]],
  ["12/24/2026", ["2026-12-24"]],
  ["5/6/2027 17:30", ["2027-06-05 17:30", "2027-05-06 17:30"]],
])("a day in another order is proposed in ours: at %p", (at, proposals) => {
  const words = { every: undefined, at, tz: undefined, until: undefined };
  expect(timesFor(words, { now: NOW, timezone: BERLIN })).toMatchObject({ unclear: { proposals } });
});

const ZONES = [
  BERLIN,
  "America/New_York",
  "Australia/Lord_Howe",
  "Asia/Kolkata",
  "America/Sao_Paulo",
  "Africa/Casablanca",
  "UTC",
];
const CLOCK = new Map<string, Intl.DateTimeFormat>();

/** The clock of a zone at a moment, as the tables of the system have it. */
function clockAt(
  second: number,
  timeZone: string,
): { day: string; hour: number; minute: number; weekday: number } {
  const format = CLOCK.getOrInsertComputed(
    timeZone,
    () => new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }),
  );
  const [day = "", time = ""] = format.format(second * 1_000).split(" ");
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  return { day, hour, minute, weekday: new Date(`${day}T00:00Z`).getUTCDay() };
}

/** Days of a month that a pattern means, by its third and fourth fields. */
function isOnDay(day: string, [, , dom = "*", month = "*", dow = "*"]: string[]): boolean {
  const date = new Date(`${day}T00:00Z`);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  if (
    month !== "*" &&
    !month
      .split(",")
      .map(Number)
      .includes(date.getUTCMonth() + 1)
  )
    return false;
  if (dom === "L") return date.getUTCDate() === last;
  if (dom !== "*") return date.getUTCDate() === Number(dom);
  if (dow === "*") return true;
  if (dow === "1-5") return date.getUTCDay() >= 1 && date.getUTCDay() <= 5;
  return dow.split(",").map(Number).includes(date.getUTCDay());
}

describe("the times of a pattern", () => {
  test("come once on each day that it means, at its clock, or right behind an hour that is left out", () => {
    const chance = chanceFrom(seedFrom("WHEN_SEED", "times of patterns"));
    const integer = (below: number): number => Math.floor(chance() * below);
    const pick = <T>(list: T[]): T => list[integer(list.length)] as T;
    for (let n = 0; n < 60; n += 1) {
      const timezone = pick(ZONES);
      const hour = integer(24);
      const minute = pick([0, 15, 30, 59]);
      const days = pick([
        "* * *",
        "* * 1-5",
        "* * 6,0",
        "* * 0",
        "L * *",
        "29 * *",
        "31 * *",
        "29 2 *",
        "1 1,4,7,10 *",
      ]);
      const pattern = `${minute} ${hour} ${days}`;
      const from = Date.UTC(2024 + integer(5), integer(12), 1 + integer(28)) / 1_000;
      const times = timesAfter({ pattern, at: null, timezone, until: null }, from, 40);
      const span = (times.at(-1) ?? from) - from;
      const found = times.map((second) => clockAt(second, timezone).day);
      const expected: string[] = [];
      const first = clockAt(from, timezone);
      for (let day = 0; day * 86_400 <= span + 86_400; day += 1) {
        const date = new Date(Date.parse(`${first.day}T00:00Z`) + day * 86_400_000)
          .toISOString()
          .slice(0, 10);
        const isOver = date === first.day && first.hour * 60 + first.minute >= hour * 60 + minute;
        if (isOnDay(date, pattern.split(" ")) && !isOver) expected.push(date);
      }
      expect({ pattern, timezone, from, found }).toEqual({
        pattern,
        timezone,
        from,
        found: expected.slice(0, found.length),
      });
      for (const second of times) {
        const clock = clockAt(second, timezone);
        const late = clock.hour * 60 + clock.minute - (hour * 60 + minute);
        // Only a clock that is set forward makes it later, by what it leaves out.
        if (late !== 0) {
          const before = clockAt(second - 3_601, timezone);
          expect({ pattern, timezone, second, late: late > 0 && late <= 60 }).toMatchObject({ late: true });
          expect((clock.hour - before.hour) * 60 + clock.minute - before.minute).toBeGreaterThan(61);
        }
      }
    }
  });

  test("are an hour apart at least, also where the clock is set back", () => {
    for (const timezone of [BERLIN, "America/New_York", "Australia/Lord_Howe"])
      for (const month of [2, 3, 9, 10]) {
        const from = Date.UTC(2026, month, 20) / 1_000;
        const times = timesAfter({ pattern: "0 * * * *", at: null, timezone, until: null }, from, 24 * 18);
        const gaps = times.slice(1).map((second, n) => second - (times[n] ?? 0));
        expect({ timezone, month, least: Math.min(...gaps) }).toEqual({ timezone, month, least: 3_600 });
        expect(Math.max(...gaps)).toBeLessThanOrEqual(2 * 3_600);
      }
  });

  test("end with the last moment at which it may run", () => {
    const until = Date.UTC(2026, 6, 17, 6) / 1_000;
    const times = timesAfter({ pattern: "0 8 * * *", at: null, timezone: BERLIN, until }, NOW, 3);
    expect(times).toEqual([Date.UTC(2026, 6, 16, 6) / 1_000, until]);
    expect(timesAfter({ pattern: null, at: NOW, timezone: BERLIN, until: null }, NOW, 3)).toEqual([]);
    expect(timesAfter({ pattern: null, at: NOW + 1, timezone: BERLIN, until: null }, NOW, 3)).toEqual([
      NOW + 1,
    ]);
  });
});
