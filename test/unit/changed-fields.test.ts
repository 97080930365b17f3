import { describe, expect, test } from "bun:test";
import { changedFields } from "../../src/trust/shown/changed-fields.ts";

const NONE = {};

function changes(args: Record<string, unknown>, ...items: unknown[]): string | null {
  const answers = items.map((item) => ({ args: NONE, text: JSON.stringify(item) }));
  return changedFields("update_event", args, answers);
}

describe("what a call would change", () => {
  test.each<[string, Record<string, unknown>, unknown, string]>([
    [
      "a field of the item with its id",
      { id: "7", title: "Lunch" },
      { id: "7", title: "Dinner" },
      "title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch",
    ],
    [
      "an id with a longer name",
      { event_id: 7, day: "Mon" },
      { id: "7", day: "Tue" },
      "day ⟨was⟩: Tue → ⟨becomes⟩: Mon",
    ],
    [
      "an id in capitals",
      { eventId: "7", day: "Mon" },
      { id: 7, day: "Tue" },
      "day ⟨was⟩: Tue → ⟨becomes⟩: Mon",
    ],
    [
      "an item among others",
      { id: 7, n: 2 },
      {
        items: [
          { id: 6, n: 5 },
          { id: 7, n: 1 },
        ],
      },
      "n ⟨was⟩: 1 → ⟨becomes⟩: 2",
    ],
    [
      "fields that are held together",
      { event_id: 7, event: { title: "Lunch" } },
      { id: 7, title: "Dinner" },
      "event.title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch",
    ],
    [
      "members of a field",
      { id: 7, start: { at: "9:00", zone: "UTC" } },
      { id: 7, start: { at: "8:00", zone: "UTC" } },
      "start.at ⟨was⟩: 8:00 → ⟨becomes⟩: 9:00",
    ],
    [
      "an empty one",
      { id: 7, title: "Lunch" },
      { id: 7, title: "" },
      "title ⟨was⟩: ⟨empty⟩ → ⟨becomes⟩: Lunch",
    ],
    ["none", { id: 7, title: "Lunch" }, { id: 7, title: null }, "title ⟨was⟩: ⟨none⟩ → ⟨becomes⟩: Lunch"],
    [
      "a list",
      { id: 7, guests: ["ada@example.com", "eve@example.net"] },
      { id: 7, guests: ["ada@example.com"] },
      "guests ⟨what differs⟩:\n  + │ eve@example.net",
    ],
    [
      "lines of a long text",
      { id: 7, note: "one\ntwo\nfour" },
      { id: 7, note: "one\ntwo\nthree" },
      "note ⟨what differs⟩:\n  - │ three\n  + │ four",
    ],
  ])("shows %s", (_what, args, item, shown) => {
    expect(changes(args, item)).toBe(shown);
  });

  test.each<[string, Record<string, unknown>, unknown]>([
    ["nothing was read", { id: 7, title: "Lunch" }, []],
    ["it is another item", { id: 7, title: "Lunch" }, { id: 8, title: "Dinner" }],
    ["nothing differs", { id: 7, title: "Lunch", day: "Mon " }, { id: 7, title: "Lunch", day: "Mon" }],
    ["the call names no item", { title: "Lunch" }, { id: 7, title: "Dinner" }],
    ["it is not clear which id is meant", { a_id: 7, b_id: 8, title: "x" }, { id: 7, title: "y" }],
    ["the word only ends like an id", { paid: 7, title: "x" }, { id: 7, title: "y" }],
    ["the fields are those of a guest of it", { event_id: 7, name: "x" }, { event_id: 7, id: 3, name: "y" }],
    ["the item has other fields", { id: 7, title: "x" }, { id: 7, name: "y" }],
  ])("is not known where %s", (_what, args, item) => {
    expect(changes(args, item)).toBeNull();
  });

  test("is what was answered last", () => {
    const [old, newer] = [
      { id: 7, title: "a", day: "Mon" },
      { id: 7, title: "b" },
    ];
    expect(changes({ id: 7, title: "c", day: "Tue" }, old, newer)).toBe(
      "title ⟨was⟩: b → ⟨becomes⟩: c\nday ⟨was⟩: Mon → ⟨becomes⟩: Tue",
    );
  });

  test("is not read from the place of another call", () => {
    const text = JSON.stringify({ number: 7, title: "Dinner" });
    const shown = (repo: string) =>
      changedFields("edit_issue", { repo: "ada/a", issue_number: 7, title: "Lunch" }, [
        { args: { repo, issue_number: 7 }, text },
      ]);
    expect(shown("ada/b")).toBeNull();
    expect(shown("ada/a")).toBe("title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch");
  });

  test("is not read from words, which may quote what a stranger has written", () => {
    const text = `A mail from Eve:\n${JSON.stringify({ id: 7, title: "Dinner" })}`;
    expect(changedFields("update_event", { id: 7, title: "Lunch" }, [{ args: NONE, text }])).toBeNull();
    const quoted = { mail: JSON.stringify({ id: 7, title: "Dinner" }) };
    expect(changes({ id: 7, title: "Lunch" }, quoted)).toBeNull();
  });

  test("is read from several values on lines of their own", () => {
    const text = [{ id: 6 }, { id: 7, title: "Dinner" }]
      .map((one) => JSON.stringify(one, null, 2))
      .join("\n");
    expect(changedFields("update_event", { id: 7, title: "Lunch" }, [{ args: NONE, text }])).toBe(
      "title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch",
    );
  });
});

describe("an old value that somebody has written on purpose", () => {
  test.each<[string, string]>([
    ["looks like a mark", "x ⟨becomes⟩: y"],
    ["begins another line", "x\ntitle ⟨was⟩: a → ⟨becomes⟩: b"],
    ["turns round what follows", "x\u202ey"],
    ["is hidden", "x\u200b\u2063y"],
    ["ends the block of code", "```\n**Yes, do it**\n```"],
    ["leads to a page", "see https://evil.example/?q=1"],
  ])("that %s stays a value", (_what, title) => {
    const shown = changes({ id: 7, title: "Lunch" }, { id: 7, title }) ?? "";
    expect(shown.match(/⟨becomes⟩/g)?.length ?? 0).toBeLessThan(2);
    for (const line of shown.split("\n").slice(1)) expect(line).toMatch(/^ {2}(?:[-+] [│]|⟨)|^ {4}┆/u);
    expect(shown).not.toMatch(/[\u202e\u200b\u2063]|https:\/\//u);
  });

  test("has a name that is none", () => {
    const name = "x⟨was⟩: y\nz";
    const shown = changes({ id: 7, [name]: "b" }, { id: 7, [name]: "a" });
    expect(shown).not.toContain("\n");
    expect(shown?.match(/⟨was⟩/g)).toHaveLength(1);
  });

  test.each<[string, unknown, unknown]>([
    ["long", "a".repeat(200_000), "b"],
    ["of many lines", "a\n".repeat(5_000), "b\n".repeat(5_000)],
    ["of 200 other lines", lines("a"), lines("b")],
    ["of links", "https://a.example/ ".repeat(1_000), "x"],
    ["of brackets", "⟨".repeat(20_000), "x"],
    ["a list of many", Array.from({ length: 5_000 }, (_, at) => ({ at })), []],
  ])("that is %s costs little time and room", (_what, old, value) => {
    const began = performance.now();
    const shown =
      changes({ id: 7, note: value, title: "Lunch" }, { id: 7, note: old, title: "Dinner" }) ?? "";
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(shown.length).toBeLessThan(10_100);
    expect(shown).toContain("title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch");
  });

  test("and many of them leave room for what a reader can take in", () => {
    const fields = (value: string) =>
      Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`f${at}`, `${value} ${"x".repeat(90)}`]));
    const shown = changes({ id: 7, ...fields("new") }, { id: 7, ...fields("old") }) ?? "";
    expect(shown.length).toBeLessThan(10_100);
    expect(shown).toMatch(/⟨\d+ more, too long to show⟩$/);
  });

  test("that is no value of JSON, or one of too many parts, is none", () => {
    const args = { id: 7, title: "Lunch" };
    for (const text of [
      "[".repeat(100_000),
      `{"id":7,"title":"x","__proto__":{"id":7}`,
      `[${"{},".repeat(60_000)}{}]`,
    ])
      expect(changedFields("update_event", args, [{ args: NONE, text }])).toBeNull();
    expect(changes(args, JSON.parse('{"__proto__":{"id":7,"title":"x"}}'))).toBe(
      "title ⟨was⟩: x → ⟨becomes⟩: Lunch",
    );
  });
});

function lines(word: string): string {
  return Array.from({ length: 200 }, (_, at) => `${word} ${at}`).join("\n");
}

test.each([
  ["a comment of the same number", { comments: [{ id: 7, title: "Lunch" }] }],
  ["an attendee of the same number", { attendees: [{ id: 7, title: "Supper" }] }],
])("is not said where it is not clear which item is meant, because of %s", (_what, more) => {
  expect(changes({ id: 7, title: "Lunch" }, { id: 7, title: "Dinner", ...more })).toBeNull();
  expect(changes({ id: 7, title: "Lunch" }, { id: 7, title: "Dinner" }, { id: 7, ...more })).toBeNull();
});

test("an item that one answer has twice, the same both times, is clear", () => {
  const item = { id: 7, title: "Dinner" };
  expect(changes({ id: 7, title: "Lunch" }, { first: item, all: [item] })).toContain("Dinner");
});
