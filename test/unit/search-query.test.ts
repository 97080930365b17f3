import { expect, test } from "bun:test";
import { AppError } from "../../src/errors.ts";
import { asksForNothing, parseQuery } from "../../src/resources/messages/search/query.ts";

const parse = (typed: string, timezone = "UTC") => parseQuery(typed, { timezone });

/** Terms in few signs: `from:[ada example]*`. */
function drawn(typed: string): string[] {
  const { terms, without } = parse(typed);
  const draw = (term: (typeof terms)[number]) =>
    `${term.in === null ? "" : `${term.in}:`}[${term.words.join(" ")}]${term.prefix ? "*" : ""}`;
  return [...terms.map(draw), ...without.map((term) => `-${draw(term)}`)];
}

test.each([
  ["invoice of march", ["[invoice]*", "[of]", "[march]*"]],
  ['"paid invoice" x', ["[paid invoice]", "[x]"]],
  ["“paid invoice”", ["[paid invoice]"]],
  ["in* a*", ["[in]*", "[a]"]],
  ["-draft invoice", ["[invoice]*", "-[draft]*"]],
  ['-"not paid"', ["-[not paid]"]],
  ["from:ada@example.com", ["from:[ada example com]*"]],
  ['subject:"two words" TO:reports', ["subject:[two words]", "to:[reports]*"]],
  ["tag:#Q3 tag:a_b.c tag:inv*", ["tag:[q3]", "tag:[a_b.c]", "tag:[inv]*"]],
  ["foo:bar http://x.org/a", ["[foo bar]*", "[http x org a]"]],
  ["日本語 字 本", ["[日本 本語]", "[字]*", "[本]*"]],
  ['"日本 abc"', ["[日本 本 abc]"]],
  ["a_b\\c 100%", ["[a b c]", "[100]*"]],
  ["- -- 🎉 \" ' ( ) *", []],
  ['"never closed', ["[never closed]"]],
  ["NEAR(a b) a AND b ^x", ["[NEAR a]", "[b]", "[a]", "[AND]*", "[b]", "[x]"]],
])("%s is read as %p", (typed, terms) => {
  expect(drawn(typed)).toEqual(terms);
});

test("days are those of the account's clock", () => {
  expect(parse("after:2026-03-04")).toMatchObject({ since: Date.UTC(2026, 2, 4) / 1_000 });
  expect(parse("before:2026-03-04")).toMatchObject({ until: Date.UTC(2026, 2, 4) / 1_000 - 1 });
  expect(parse("after:2026-03-04", "Asia/Tokyo").since).toBe(Date.UTC(2026, 2, 3, 15) / 1_000);
  expect(parse("after:2026-01-01 after:2026-02-01").since).toBe(Date.UTC(2026, 1, 1) / 1_000);
  expect(parse("has:FILE x")).toMatchObject({ has_file: true });
});

test.each(["after:yesterday", "before:2026-02-30", "before:", "-after:2026-01-01", "has:money", "has:"])(
  "%s is refused in words",
  (typed) => {
    expect(() => parse(typed)).toThrow(/^(before|after|has): needs /);
  },
);

test.each([
  [
    "frm:bob",
    "A search has no field frm:. Did you mean from:? Put quotes around it to look for it as words.",
  ],
  ["Form:bob", "no field Form:. Did you mean from:?"],
  ['subjct:"a b"', "Did you mean subject:?"],
  ["-sender:bob", "Did you mean from:?"],
  ["since:2026-03-01", "Did you mean after:?"],
  ["in:desk", "There are from:, to:, subject:, tag:, has:file, before: and after:."],
])("a field that there is not, as in %s, is named", (typed, words) => {
  expect(() => parse(typed)).toThrow(words);
});

test.each([
  "http://x.org",
  "10:30",
  "localhost:3000",
  "Re:Invoice",
  "in: x",
  "std::vector",
  '"frm:bob"',
  "mailto:a@b.org",
  "x:y",
])("%s is words", (typed) => {
  expect(parse(typed).terms.every((term) => term.in === null)).toBe(true);
});

test("has at most 32 words, those of phrases included, and knows when nothing is asked for", () => {
  expect(() => parse("a ".repeat(33))).toThrow(AppError);
  expect(() => parse(`"${"a ".repeat(33)}"`)).toThrow(AppError);
  expect(asksForNothing(parse("a ".repeat(32)))).toBe(false);
  expect(asksForNothing(parse("!? 🎉"))).toBe(true);
  expect(asksForNothing(parse("has:file"))).toBe(false);
});

test("what is hostile is read in linear time, and never throws anything but a refusal", () => {
  for (const bad of ['"', "-", ":", "*", "from:", "\0", "é", "from:-", "‮אבג", "日", "subject:\"'"]) {
    const typed = bad.repeat(200_000 / bad.length);
    const began = performance.now();
    try {
      parse(typed);
    } catch (error) {
      expect(error).toBeInstanceOf(AppError);
    }
    expect(performance.now() - began).toBeLessThan(2_000);
  }
});
