import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import MarkdownIt from "markdown-it";

import { noGivenIds } from "../../src/trust/guard/given-ids.ts";
import type { Going } from "../../src/trust/guard/guard.ts";
import type { Tool } from "../../src/trust/guard/tool.ts";
import { createFairPool, type FairPool } from "../../src/lib/fair-pool.ts";
import { createLog } from "../../src/lib/log.ts";
import { fencesOf } from "../../src/mail/writing/markdown.ts";
import type { Trust } from "../../src/trust/shown/links.ts";
import { MAX_TEXT_BYTES, textFile } from "../../src/pipeline/made-files.ts";
import { redactArguments } from "../../src/trust/shown/redact.ts";
import {
  makeTextFile,
  type SentWork,
  TEXT_WORK,
  type WorkName,
  workOnText,
} from "../../src/pipeline/text-work.ts";
import { objectionTo } from "../support/guard.ts";
import { toolCalls } from "../support/model-server.ts";
import { mailroom } from "../support/mailroom.ts";

const log = createLog({ level: "silent", format: "text" });
const ADA = { account: "ada" };
/** What the threads were given, and whose turn it was. */
const worked: string[] = [];
const threads = { texts: seen(createFairPool<unknown>("pipeline/text-worker.ts"), worked), log };
const TRUST: Trust = {
  tainted: true,
  trusted_text: "see https://ok.example/a",
  material: "https://said.example/b",
};

const LONG_WORDS = "Ordinary words.\n".repeat(500);
/** A call of a tool of ours, to one of two pages of the same title. */
const GOING: Going = {
  tool: {
    target: "notion",
    name: "append",
    read_only: false,
    foreign: false,
    places: ["page_id"],
    numbered: undefined,
    site: undefined,
    titled: true,
    looks: false,
    listed: { names: [], values: [] },
  },
  args: { page_id: "a" },
  tainted: true,
  unseen: true,
  by_owner: true,
  instruction: `Add it to the page "Weekly plan".\n${LONG_WORDS}`,
  trusted_text: `Add it to the page "Weekly plan".\n${LONG_WORDS}`,
  said: "",
  told: [],
  since: null,
  written: [],
  shared: null,
  orders: [],
  numbers: [],
  own_domains: [],
  given: noGivenIds(),
  material: "",
  calling_code: null,
  places: [
    { id: "a", name: "Weekly plan" },
    { id: "b", name: "weekly plan" },
  ],
  read_at: [],
  anybodys: true,
};

/** The same pool; the name of each work it does goes into `names`, with whom it is for. */
function seen(pool: FairPool<unknown>, names: string[]): FairPool<unknown> {
  return {
    ...pool,
    run: (turn, pack) =>
      pool.run(turn, async () => {
        const job = await pack();
        names.push(`${(job.input as SentWork).name} for ${turn.strangers ? "strangers of " : ""}${turn.who}`);
        return job;
      }),
  };
}

beforeEach(() => worked.splice(0));
afterAll(() => threads.texts[Symbol.asyncDispose]());

describe("a long text is worked on by a thread as it would be here", () => {
  const filler = "Ordinary words, **bold** ones and a table.\n\n".repeat(1_000);
  const markdown = `${filler}[ok](https://ok.example/a) [no](https://no.example/c?x=1) https://said.example/b\n\n\`\`\`csv\na,b\n\`\`\`\n`;
  const works: [WorkName, object][] = [
    ["fence", { material: markdown, nonce: "n0nce", max_chars: 30_000 }],
    ["guard", { markdown, trust: TRUST }],
    ["html", { markdown, trust: TRUST }],
    ["write", { markdown, trust: TRUST, pictures: [] }],
    ["notes", { markdown, trust: TRUST }],
    ["fences", { markdown }],
    ["places", GOING],
    ["title", { id: "a", going: GOING }],
    ["alike", { title: "Weekly plan", places: GOING.places, going: GOING }],
    ["file", { file: { filename: "a.md", text: markdown }, trust: TRUST }],
    [
      "learn",
      {
        trust: TRUST,
        args: [JSON.stringify({ url: "https://made.example/up" })],
        said: [
          { text: `${filler} https://made.example/up https://new.example/d`, vouches: true, failed: false },
        ],
        made_up: ["https://earlier.example/"],
        asked_before: "",
      },
    ],
  ];

  test.each(works)("%s", async (name, input) => {
    const here = (await (TEXT_WORK[name] as (given: unknown) => unknown)(input)) as object;
    const there = (await workOnText(threads, name, input as never, ADA)) as object;
    expect(worked).toEqual([`${name} for ada`]);
    expect(plain(there)).toEqual(plain(here));
    expect(JSON.stringify(plain(here)).length).toBeGreaterThan(10);
  });

  test("build", async () => {
    const parts = {
      from: { name: "Desk", address: "desk@mw.test" },
      to: "ada@example.com",
      messageId: "<x@mw.test>",
      date: new Date(0),
      text: markdown,
      html: "<p>ä</p>",
      baseBoundary: "b",
      attachments: [
        { filename: "a.bin", contentType: "application/octet-stream", content: Buffer.alloc(50_000, 7) },
      ],
    };
    const there = await workOnText(threads, "build", parts, ADA);
    expect(worked).toEqual(["build for ada"]);
    expect(Buffer.from(there ?? [])).toEqual(Buffer.from(await TEXT_WORK.build(parts)));
  });

  /** Bytes come back as a mere `Uint8Array`. */
  function plain(value: object): object {
    return "bytes" in value ? { ...value, bytes: Buffer.from(value.bytes as Uint8Array).toString() } : value;
  }
});

describe("a text that cannot be read in time", () => {
  const failing = {
    texts: { ...threads.texts, run: () => Promise.resolve({ ok: false, problem: "too_slow" } as const) },
    log,
  };

  test("makes no file, and says why", async () => {
    const file = await makeTextFile(failing, { filename: "a.html", text: "<p>".repeat(10_000) }, TRUST, ADA);
    expect(file).toEqual({
      refusal: "a.html was left out: it is built in a way that takes too long to read.",
    });
  });

  test("is mailed as plain text, its links left out as before", async () => {
    const answer = `${"x ".repeat(10_000)}\n<b>not bold</b> [a](https://no.example/?x=1)`;
    await using room = await mailroom({ model: { reply: () => answer } });
    const { texts } = room.app;
    room.app.texts = {
      ...texts,
      run: async (turn, pack) => {
        const job = await pack();
        const isWritten = (job.input as SentWork).name === "write";
        return isWritten ? { ok: false, problem: "too_slow" } : texts.run(turn, () => job);
      },
    };
    await room.send({ text: "Answer this\n\n> quoted of somebody" });
    await room.drain();
    const [row] = await room.outgoing();
    const mail = await simpleParser(Buffer.from(row?.raw ?? []));
    expect(mail.html).toContain("&lt;b&gt;not bold&lt;/b&gt; a (link left out)");
    expect(mail.html).not.toContain("no.example");
    expect(mail.text).toContain("not bold");
  });
});

describe("an answer that is wanted as a file", () => {
  /** What the threads did for it, and what the owner is told. */
  async function answered(type: string, answer: string) {
    await using room = await mailroom({ model: { reply: () => answer } });
    const names: string[] = [];
    room.app.texts = seen(room.app.texts, names);
    await room.send({ subject: "Re: Work", text: `--attach=${type} Work` });
    await room.drain();
    const { steps, user_id } = await room.newest();
    return { works: names.map((name) => name.replace(user_id, "the owner")), steps };
  }

  test.each(["html", "json", "csv"])("is not read first where it is too long for one: %s", async (type) => {
    const { works, steps } = await answered(type, "Words of an answer.\n\n".repeat(55_000));
    expect(steps).toContain(`answer.${type} was left out: a file of text has at most 1 MB.`);
    expect(works).not.toContain("fences for the owner");
    expect(works.filter((work) => work === "write for the owner").length).toBe(1);
    expect(works).not.toContain("html for the owner");
  });

  test("has its turn as what the owner asked for", async () => {
    const { works, steps } = await answered("html", "Words of an answer.\n\n".repeat(2_000));
    expect(works).toContain("fences for the owner");
    expect(works.filter((work) => !work.endsWith(" for the owner"))).toEqual([]);
    expect(steps).not.toContain("left out");
  });
});

test("what is between marks of code is the same whatever stands in the lines", () => {
  const lines = [
    "[a](https://a.example) a@b.co **b**",
    "> ```csv\n> 1\n> ```",
    "- ~~~\n  x\n  ~~~",
    "    ```",
    "`",
  ];
  const markdown = [...lines, "```JSON a", '{"a":1}', "```", "| a |\n|-|\n| ``` |", "~~~", "open"].join(
    "\n\n",
  );
  const whole = new MarkdownIt({ linkify: true, breaks: true }).parse(markdown, {});
  const fences = whole.filter(({ type }) => type === "fence");
  expect(fencesOf(markdown)).toEqual(
    fences.map(({ info, content }) => ({ language: info.toLowerCase(), content })),
  );
  expect(fences.map(({ info }) => info)).toEqual(["csv", "", "", "JSON a", ""]);
});

test("a file of text over its size is refused before anything in it is read", () => {
  // Who reads it refuses it for what it is.
  const text = `<!DOCTYPE x [<!ENTITY a "b">]>`.repeat(2).padEnd(MAX_TEXT_BYTES + 1, "x");
  expect(textFile({ filename: "a.xml", text }, TRUST)).toEqual({
    refusal: "a.xml was left out: a file of text has at most 1 MB.",
  });
});

test.each([
  ["read in time", true],
  ["not read in time", false],
])("a call goes nowhere that a long instruction does not name: one that is %s", async (_how, in_time) => {
  const works: string[] = [];
  let called = 0;
  await using room = await mailroom({
    model: { reply: () => (called++ === 0 ? toolCalls([{ name: "notes__append", args: APPEND }]) : "Done.") },
  });
  await room.owner.post("/connections", { kind: "notes", credential: "token-5f0c93d1e7" });
  const { texts } = room.app;
  room.app.texts = seen(
    in_time
      ? texts
      : { ...texts, run: async (_turn, pack) => (await pack(), { ok: false, problem: "too_slow" } as const) },
    works,
  );
  const { body } = await room.owner.post("/v1/messages", {
    instruction: `@notes Keep it.\n${LONG_WORDS}`,
    content: "Eve writes",
  });
  expect(works[0]).toStartWith("places for ");
  const step = body.steps.find(({ type }: { type: string }) => type === "tool_call");
  expect(step).toMatchObject({ name: "append", status: "blocked" });
  expect(step.output).toContain(
    in_time ? "which the instruction does not name" : "than can be looked through",
  );
});

const APPEND = { page_id: "0a1b2c3d-2cf9-4fdf-8782-e53db20768a5", markdown: "x" };

describe("arguments of a call are looked through as far as there is an end to it", () => {
  const tool: Tool = {
    target: "mcp:x",
    name: "fetch",
    description: "",
    parameters: {},
    read_only: true,
    destructive: false,
    foreign: true,
    call: () => Promise.reject(new Error("not called")),
  };
  const objection = (args: Record<string, unknown>, trusted_text = ""): string | null =>
    objectionTo({
      tool,
      args,
      powers: { mayUse: () => true, mayWrite: () => true, destroy: true },
      tainted: true,
      beside: null,
      subject_alone: false,
      instruction: trusted_text,
      trusted_text,
      places: [],
      read_at: [],
      anybodys: true,
      own_domains: ["mw.test"],
    })?.reason ?? null;

  test.each<[what: string, args: Record<string, unknown>]>([
    ["a text", { q: "x ".repeat(50_001) }],
    ["a name", { ["x".repeat(100_001)]: 1 }],
    ["many texts", { list: Array.from({ length: 10_001 }, () => "x") }],
    [
      "many addresses",
      { q: Array.from({ length: 1_001 }, (_, index) => `https://a.example/${index}`).join(" ") },
    ],
  ])("%s over it is blocked, whatever it says", (_what, args) => {
    expect(objection(args, JSON.stringify(args))).toContain("than can be looked through");
  });

  test("what is below it may hold as much as before", () => {
    const list = Array.from({ length: 900 }, (_, index) => `https://a.example/${index}`);
    expect(objection({ q: list.join(" ") }, list.join(" "))).toBeNull();
    expect(objection({ q: `${"x ".repeat(49_000)}https://a.example/1` })).toContain("https://a.example/1");
    expect(objection({ q: "x ".repeat(49_000) })).toBeNull();
  });

  test("an address longer than any is strange even where it stands", () => {
    const url = `https://a.example/${"x".repeat(4_000)}`;
    expect(objection({ url }, `Fetch ${url} now`)).toContain("was to go to https://a.example/");
  });

  test("a host longer than any is a place like others", () => {
    expect(objection({ url: `${"a.".repeat(200)}zz/x` })).not.toBeNull();
    expect(objection({ q: `${"a.".repeat(200)}zz/x` })).not.toBeNull();
  });
});

test("arguments are redacted as far as they can be shown", () => {
  const many = { list: Array.from({ length: 3_000 }, () => "sk-aaaaaaaaaaaaaaaaaaaa") };
  expect(redactArguments(many)).toEqual({ "…": `${JSON.stringify(many).length} characters of arguments` });
  const long = Array.from({ length: 20 }, () => `sk-${"a1".repeat(20)} ${"x".repeat(9_000)}`);
  expect(JSON.stringify(redactArguments({ long }))).not.toContain("a1a1");
});

test("a run whose calls, results and files are hostile ends as any other", async () => {
  const hostile = "://".repeat(80_000);
  let asked = 0;
  await using room = await mailroom({
    model: {
      reply: () => {
        asked += 1;
        const files = ["md", "html", "xml", "csv"].map((ending) => ({
          name: "files__create_file",
          args: { filename: `a.${ending}`, content: `<!DOCTYPE[${hostile}` },
        }));
        return asked === 1
          ? toolCalls([...files, { name: hostile, args: { url: hostile } }])
          : "![".repeat(50_000);
      },
    },
  });
  await room.send({ text: "Make the files\n\n> quoted" });
  await room.drain();
  const message = await room.newest();
  expect(message).toMatchObject({ state: "done", error: null });
  expect(message.steps).toContain("Made a.md (");
  expect(message.steps).toContain("a.xml was not made: something in it could act when it is opened.");
  expect(await room.outgoing()).toHaveLength(1);
});
