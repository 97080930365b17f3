import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { patternsIn } from "../../scripts/patterns/find.ts";
import { objectionTo } from "../../scripts/patterns/linear.ts";

const REFUSED: [pattern: RegExp, where: string][] = [
  [/^[> \t]*message-id:[ \t]*\n?[ \t]*<([^<>\s]{1,500})>/im, "of a bounce, 28 s for 256 KB"],
  [/<!DOCTYPE[^[\]>]{0,2000}(?:\[[^\]]*\]\s{0,100})?>/i, "of a made file, 21 s for 600 KB"],
  [/^([^\s:]+)\s*:\s*(.*)$/, "of a delivery status, with a bare CR in it"],
  [/[/.,;:!?]+$/, "of an address in the arguments of a tool"],
  [/(a+)+$/, "with loops in each other"],
  [/(?:a|ab|b)*c/, "with alternatives that overlap"],
  [/\s+$/, "that begins anywhere in what it loops over"],
  [/<a [^>]*href/, "whose beginning stands in what it loops over"],
  [/x(?=[^y]*z)/, "that looks ahead to the end from each of many places"],
  [/"(?:[^"\\]|\\.)*"/, "in which a quote may be escaped"],
  [/a[^b]{0,5000}b/, "whose loop ends, but late"],
];
const TAKEN: RegExp[] = [
  /(?<!\s)\s+$/,
  /<a [^<>]*href/,
  /"[^"]*"/,
  /^\s*[a-z]+$/,
  /(?<![\p{L}_.-])(?:[\p{L}_-]+\.)+[\p{L}-]{2,}/u,
  /https?:\/\/\S+/,
  /\s+$/y,
  /a[^b]{0,50}b/,
];

test.each(REFUSED)("the check refuses %p %s", ({ source, flags }) => {
  expect(objectionTo({ source, flags })).toMatch(/take the same characters|run through again/);
});

test.each(TAKEN)("the check takes %p", ({ source, flags }) => {
  expect(objectionTo({ source, flags })).toBeNull();
});

test("patterns are found that are put together of constants, and those of anything else are told apart", () => {
  const text = [
    'const MARK = "a+";',
    "const MAX = 3;",
    "const LIST = [`${MARK}b`, String.raw`\\s{1,${MAX}}`];",
    'const ALL = new RegExp(LIST.join("|"), "gu");',
    "const AGAIN = new RegExp(`(${/x/.source})`);",
    'const LATE = (name: string) => new RegExp(name, "i");',
  ].join("\n");
  expect(patternsIn("x.ts", text).map(({ line, pattern }) => [line, pattern])).toEqual([
    [4, { source: String.raw`a+b|\s{1,3}`, flags: "gu" }],
    [5, { source: "(x)", flags: "" }],
    [5, { source: "x", flags: "" }],
    [6, null],
  ]);
});

test("the check of this program fails for a file with such a pattern, and says where it is", async () => {
  const folder = await mkdtemp(join(tmpdir(), "patterns-"));
  const file = join(folder, "bad.ts");
  await Bun.write(
    file,
    "export const A = /ok/;\nexport const B = /\\s+$/;\nexport const C = RegExp(A + B);\n",
  );
  const run = Bun.spawn([process.execPath, join(import.meta.dir, "../../scripts/check-patterns.ts"), file], {
    stderr: "pipe",
  });
  const said = await new Response(run.stderr).text();
  expect(await run.exited).toBe(1);
  expect(said).toContain(`${file}:2 /\\s+$/`);
  expect(said).toContain(`${file}:3 RegExp(A + B)\n  it is not a constant of this file`);
  expect(said).not.toContain(`${file}:1`);
  await rm(folder, { recursive: true });
});
