import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { clockAt, type Facts, fits, kindsOf, nextClock } from "../../src/resources/inboxes/rules/match.ts";
import { findSought, soughtBy } from "../../src/resources/inboxes/rules/words.ts";
import { findWords } from "../../src/lib/find-words.ts";
import type { Condition, Field } from "../../src/resources/inboxes/rules/rules.ts";

const FACTS: Facts = {
  sender: "bob@shop.example",
  tags: ["billing"],
  authority: "stranger",
  headers: { all: (name) => (name === "list-id" ? ["=?utf-8?q?N=C3=A9ws?= <news.shop.example>"] : []) },
  kinds: kindsOf([{ filename: "scan.PDF", content_type: "application/octet-stream" }]),
  size: 5_000,
  found: {},
  accepted: Date.UTC(2026, 10, 27, 22, 30) / 1_000,
  timezone: "Europe/Berlin",
};

const WORDS = { subject: "Your  INVOICE no. 7", text: "Please pay\n42 euros by Friday" };

function condition(field: Field, more: Partial<Condition> = {}): Condition {
  const none = {
    is: [],
    contains: [],
    name: "",
    over_bytes: null,
    under_bytes: null,
    days: [],
    from: "",
    to: "",
  };
  return { field, ...none, zone: "", not: false, ...more };
}

function holds(field: Field, more: Partial<Condition>, facts: Partial<Facts> = {}): boolean {
  const when = [condition(field, more)];
  const all = { ...FACTS, ...facts };
  const found = findSought(soughtBy([{ when }], { ...WORDS, headers: all.headers }));
  return fits({ when, match: "all" }, { ...all, found });
}

describe("a condition on", () => {
  test("the sender knows addresses, domains and subdomains, and no call", () => {
    expect(holds("sender", { is: ["bob@shop.example"] })).toBe(true);
    expect(holds("sender", { is: ["@shop.example"] })).toBe(true);
    expect(holds("sender", { is: ["@*.example"] })).toBe(true);
    expect(holds("sender", { is: ["@hop.example", "ob@shop.example"] })).toBe(false);
    expect(holds("sender", { is: ["@shop.example"] }, { sender: "" })).toBe(false);
  });

  test("subject and text knows no capitals and one kind of blank", () => {
    expect(holds("subject", { contains: ["your invoice"] })).toBe(true);
    expect(holds("text", { contains: ["pay 42"] })).toBe(true);
    expect(holds("text", { contains: ["invoice"] })).toBe(false);
  });

  test("a header reads encoded words, and without words only asks whether it is there", () => {
    expect(holds("header", { name: "list-id" })).toBe(true);
    expect(holds("header", { name: "list-id", contains: ["néws"] })).toBe(true);
    expect(holds("header", { name: "x-spam" })).toBe(false);
    expect(holds("header", { name: "list-id" }, { headers: null })).toBe(false);
  });

  test("files goes by type or ending", () => {
    expect(holds("files", { is: ["pdf"] })).toBe(true);
    expect(holds("files", { is: ["picture", "table"] })).toBe(false);
    expect(holds("files", { is: ["any"] })).toBe(true);
    expect(holds("files", { is: ["any"] }, { kinds: kindsOf([]) })).toBe(false);
    const csv = [{ filename: "x", content_type: "text/csv" }];
    expect(holds("files", { is: ["table"] }, { kinds: kindsOf(csv) })).toBe(true);
  });

  test("tag, size and authority; and each of them can be turned round", () => {
    expect(holds("tag", { is: ["billing"] })).toBe(true);
    expect(holds("size", { over_bytes: 4_999, under_bytes: 5_001 })).toBe(true);
    expect(holds("size", { over_bytes: 5_000 })).toBe(false);
    expect(holds("authority", { is: ["stranger"] })).toBe(true);
    expect(holds("authority", { is: ["stranger"], not: true })).toBe(false);
  });

  test("time goes by the clock of the account, or of the zone it names, and over midnight", () => {
    expect(clockAt(FACTS.accepted, "Europe/Berlin")).toEqual({ day: "fri", time: "23:30" });
    expect(holds("time", { from: "22:00", to: "06:00" })).toBe(true);
    expect(holds("time", { from: "22:00", to: "06:00", zone: "UTC" })).toBe(true);
    expect(holds("time", { from: "23:31", to: "06:00" })).toBe(false);
    expect(holds("time", { days: ["sat"] })).toBe(false);
    expect(holds("time", { days: ["sat"], zone: "Asia/Tokyo" })).toBe(true);
    const later = { accepted: FACTS.accepted + 3 * 3_600 };
    expect(holds("time", { days: ["fri"], from: "22:00", to: "06:00" }, later)).toBe(true);
    expect(holds("time", { days: ["sat"], from: "22:00", to: "06:00" }, later)).toBe(false);
  });

  test("several: all of them, or any", () => {
    const when = [condition("tag", { is: ["billing"] }), condition("files", { is: ["mail"] })];
    expect(fits({ when, match: "all" }, FACTS)).toBe(false);
    expect(fits({ when, match: "any" }, FACTS)).toBe(true);
    expect(fits({ when: [], match: "any" }, FACTS)).toBe(true);
  });
});

test("words are found where they stand, in one pass, whatever they have in common", () => {
  const word = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom("a", "b", " ") });
  fc.assert(
    fc.property(
      fc.string({ maxLength: 60, unit: fc.constantFrom("a", "b", "c", " ") }),
      fc.uniqueArray(word, { maxLength: 12 }),
      (text, words) => {
        expect([...findWords(text, words)].toSorted()).toEqual(
          words.filter((one) => text.includes(one)).toSorted(),
        );
      },
    ),
  );
});

test("a text is compared to its 50,000th character, counted once it can be compared", () => {
  const found = (text: string) =>
    findSought([{ place: "text", texts: [text], coded: false, words: ["pay"] }])["text"];
  expect(found("x ".repeat(24_990) + "PAY")).toEqual(["pay"]);
  expect(found("x ".repeat(25_000) + "pay")).toEqual([]);
  // Each becomes eighteen characters.
  expect(found("\uFDFA".repeat(2_700) + " pay")).toEqual(["pay"]);
  expect(found("\uFDFA".repeat(2_800) + " pay")).toEqual([]);
  // Where a piece ends, letters of two characters stay whole.
  const found_e = findSought([
    { place: "text", texts: ["y".repeat(1_998) + " ne\u0301e"], coded: false, words: ["née"] },
  ]);
  expect(found_e["text"]).toEqual(["née"]);
});

const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "Asia/Kathmandu",
  "America/Sao_Paulo",
];

test("a mail waits for the next time that the clock of its place shows, at most a week and an hour, in summer and in winter", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1_700_000_000, max: 1_900_000_000 }),
      fc.constantFrom(...ZONES),
      fc.integer({ min: 4, max: 23 }),
      fc.subarray(["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const),
      (accepted, zone, hour, days) => {
        const until = `${String(hour).padStart(2, "0")}:15`;
        const at = nextClock({ until, days: [...days], zone }, { accepted, timezone: "UTC" });
        const shown = clockAt(at, zone);
        expect(shown.time).toBe(until);
        if (days.length > 0) expect(days as readonly string[]).toContain(shown.day);
        expect(at).toBeGreaterThan(accepted - 60);
        expect(at - accepted).toBeLessThanOrEqual((days.length === 0 ? 1 : 7) * 86_400 + 3_600);
      },
    ),
  );
});
