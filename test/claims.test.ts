import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { isTest } from "./support/named-tests.ts";

const ROOT = join(import.meta.dir, "..");
const MARK = /\[\^([\w-]+)\](?!:)/g;
/** What a mark leads to: a file, and the titles of a test in it with the groups around it. */
const NOTE = /^\[\^([\w-]+)\]: (`test\/[\w./-]+`(?: › "[^"]+")+)$/gm;
const SENTENCE_END = /(?<=\.(?:\[\^[\w-]+\])*) /;
/** Pages that promise something besides docs/reliability.md, where each sentence does. */
const PAGES = [
  "README.md",
  ...["api", "billing", "commands", "configuration", "tools", "trust", "webhooks"].map(
    (name) => `docs/${name}.md`,
  ),
];
/** Words of these pages that promise something for when things go wrong, or somebody writes or calls too much. */
const PROMISE =
  /\b(?:lost|loses nothing|a crash|power cut|synced|outlives|at a time|in vain|every attempt|while the server runs|work in progress|costs? (?:one credit|none)|switched off|owner is told|put off|nothing is deleted|write to each other)\b/i;
/** Words that promise something to whoever does what stands there. */
const REWARD =
  /\b(?:by itself|found again|start it again|run again|nothing to do|compares it)\b|^(?:Stop the server, )?`mailwright restore/i;

describe.each(["docs/reliability.md", ...PAGES])("%s", (page) => {
  test("names only tests that are there", async () => {
    const notes = [...(await read(page)).matchAll(NOTE)];
    const found = await Promise.all(notes.map(([, , name = ""]) => isTest(name)));
    expect(notes.filter((_note, at) => !found[at]).map(([note]) => note)).toEqual([]);
    if (page === "docs/reliability.md") expect(notes.length).toBeGreaterThan(100);
  });

  test("has one note for each of its marks, and no other", async () => {
    const text = await read(page);
    const notes = Array.from(text.matchAll(NOTE), ([, mark]) => mark);
    expect(notes).toEqual(Array.from(text.matchAll(/^\[\^(.*?)\]:/gm), ([, mark]) => mark));
    expect(notes.toSorted()).toEqual([...new Set(marksIn(text))].toSorted());
  });
});

test("docs/reliability.md names a test for every sentence on what the server does", async () => {
  const blocks = (await read("docs/reliability.md")).split("\n\n");
  const table = blocks.findIndex((block) => block.startsWith("| What happens | What the server does |"));
  const rows = (blocks[table] ?? "").split("\n").slice(2);
  expect(rows.length).toBeGreaterThan(15);
  const about = (blocks[table - 2] ?? "").replaceAll("\n", " ");
  const claims = [about, ...rows.map((row) => row.split(" | ")[1] ?? "")];
  const sentences = claims.flatMap((claim) => claim.split(SENTENCE_END));
  expect(sentences.filter((sentence) => !/\[\^[\w-]+\]$/.test(sentence))).toEqual([]);
});

test("docs/reliability.md names a test for what comes of it when somebody does what it says", async () => {
  const rows = (await read("docs/reliability.md")).split("\n").filter((line) => /^\| .* \|$/.test(line));
  const advice = rows.flatMap((row) => (row.split(" | ")[2] ?? "").replace(/ \|$/, "").split(SENTENCE_END));
  const rewards = advice.filter((sentence) => REWARD.test(sentence));
  expect(rewards.length).toBeGreaterThan(8);
  expect(rewards.filter((sentence) => marksIn(sentence).length === 0)).toEqual([]);
});

test("every page names a test wherever it promises that nothing gets lost", async () => {
  const texts = await Promise.all(PAGES.map(read));
  const parts = texts.flatMap((text) =>
    text
      .replaceAll(/^```.*?^```$/gms, "")
      .replaceAll(NOTE, "")
      .replaceAll(/(?<=\S)\n(?=[^\s|-])/g, " ")
      .split(/\n| \| /),
  );
  const promises = parts.flatMap((part) => part.split(SENTENCE_END)).filter((part) => PROMISE.test(part));
  expect(promises.length).toBeGreaterThan(8);
  expect(promises.filter((promise) => marksIn(promise).length === 0)).toEqual([]);
});

function marksIn(text: string): string[] {
  return Array.from(text.matchAll(MARK), ([, mark = ""]) => mark);
}

function read(page: string): Promise<string> {
  return Bun.file(join(ROOT, page)).text();
}
