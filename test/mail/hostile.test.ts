import { afterAll, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createMailParser, type ParseOutcome } from "../../src/mail/reading/parse.ts";
import { multipart, rawMail } from "../support/mails.ts";
import { watchThread } from "../support/own-time.ts";
import { MB } from "../../src/lib/sizes.ts";

const HELD_MS = 60;

// What is looked at is this thread: how long the other one takes on a busy machine is not.
const parser = createMailParser({ read_within_ms: 15_000 });
afterAll(() => parser[Symbol.asyncDispose]());

/** Parses while this thread is watched; `held_ms` is the longest that it was not free. */
async function parseWatched(raw: Uint8Array): Promise<{ outcome: ParseOutcome; held_ms: number }> {
  await parser.parse(Buffer.from("Subject: wakes the worker\r\n\r\n"));
  // What the test has made and dropped is no work of the parser.
  Bun.gc(true);
  const watch = watchThread();
  const outcome = await parser.parse(raw);
  return { outcome, held_ms: watch.longestMs() };
}

const head = "From: a@x.org\r\nSubject: hostile\r\n";
const problem = (outcome: ParseOutcome): string => (outcome.ok ? "none" : outcome.problem);

function nested(depth: number): string {
  let raw = `${head}Content-Type: multipart/mixed; boundary=b0\r\n\r\n`;
  for (let level = 0; level < depth; level += 1) {
    raw += `--b${level}\r\nContent-Type: multipart/mixed; boundary=b${level + 1}\r\n\r\n`;
  }
  return `${raw}--b${depth}\r\n\r\nthe core\r\n`;
}

describe("hostile mails end in an outcome and hold up nothing else", () => {
  const manyParts = `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nfirst words\r\n${"--b\r\n\r\nx\r\n".repeat(200_000)}`;
  const cases: [string, () => Uint8Array | string, string][] = [
    ["1,000 nested multiparts", () => nested(1_000), "too_many_parts"],
    ["150 nested multiparts", () => nested(150), "too_deep"],
    ["200,000 parts", () => manyParts, "too_many_parts"],
    [
      "100,000 nested divs",
      () => rawMail({ html: `${"<div>".repeat(100_000)}x${"</div>".repeat(100_000)}` }),
      "none",
    ],
    ["a 0.8 MB header", () => `${head}${"X-A: b\r\n".repeat(100_000)}\r\nhi`, "headers_too_large"],
    ["a 1 MB header line", () => `${head}X-A: ${"b".repeat(MB)}\r\n\r\nhi`, "headers_too_large"],
    [
      "a 1 MB header of a part",
      () => `${head}${multipart("mixed", "b", [`X-A: ${"b".repeat(MB)}\r\n\r\nhi`])}`,
      "headers_too_large",
    ],
    ["2,000 addresses", () => `${head}To: ${"a@b.c, ".repeat(2_000)}\r\n\r\nhi`, "headers_too_large"],
    ["60 KB of open brackets in To", () => `${head}To: ${"<(".repeat(30_000)}\r\n\r\nhi`, "none"],
    ["60 KB of encoded words", () => `${head}Subject: ${"=?utf-8?q?a?= ".repeat(4_000)}\r\n\r\nhi`, "none"],
    [
      "60 KB of parameters",
      () => `${head}Content-Type: text/plain; ${"a*1=b; ".repeat(8_000)}\r\n\r\nhi`,
      "none",
    ],
    ["1 MB without a line end", () => `${head}\r\n${"a".repeat(MB)}`, "none"],
    ["1 MB of >", () => `${head}\r\n${">".repeat(MB)}`, "none"],
    [
      "3 MB of dashes",
      () => `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n${"--\n".repeat(MB)}`,
      "none",
    ],
    [
      "1 MB of soft breaks",
      () => `${head}Content-Transfer-Encoding: quoted-printable\r\n\r\n${"=\r\n".repeat(MB / 3)}`,
      "none",
    ],
    [
      "1 MB of flowed lines",
      () => `${head}Content-Type: text/plain; format=flowed\r\n\r\n${"a \r\n".repeat(MB / 4)}`,
      "none",
    ],
    [
      "a file of 25 MB",
      () =>
        rawMail({ text: "see file", attachments: [{ filename: "a.bin", content: new Uint8Array(25 * MB) }] }),
      "none",
    ],
  ];
  test.each(cases)("%s", async (_name, make, expected) => {
    const raw = make();
    const bytes = typeof raw === "string" ? Buffer.from(raw) : raw;
    // Garbage may be collected meanwhile; a parser that blocks this thread blocks it every time.
    let held_ms = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 8 && held_ms >= HELD_MS; round += 1) {
      const watched = await parseWatched(bytes);
      expect(problem(watched.outcome)).toBe(expected);
      held_ms = watched.held_ms;
    }
    expect(held_ms).toBeLessThan(HELD_MS);
  });

  test("what came before a limit is handed over, to be shown and never obeyed", async () => {
    const outcome = await parser.parse(Buffer.from(manyParts));
    if (outcome.ok) throw new Error("should be refused");
    expect(outcome.text).toStartWith("first words");
    expect(outcome.text.length).toBeLessThanOrEqual(16 * 1024);
    expect(outcome.message).toContain("1,000 parts");
  });

  test("the file of 25 MB comes back whole", async () => {
    const content = new Uint8Array(25 * MB).fill(7);
    const outcome = await parser.parse(rawMail({ attachments: [{ filename: "a.bin", content }] }));
    if (!outcome.ok) throw new Error(outcome.message);
    expect(outcome.mail.attachments[0]?.size).toBe(25 * MB);
    expect(Bun.hash(outcome.mail.attachments[0]?.bytes ?? "")).toBe(Bun.hash(content));
  });
});

test("a mail that takes too long is given up, and those behind it are read", async () => {
  await using hasty = createMailParser({ read_within_ms: 400, more_ms_per_mb: 0 });
  await hasty.parse(Buffer.from("Subject: wakes the worker\r\n\r\n"));
  const page = `Content-Type: text/html\r\n\r\n${"<p></p>".repeat((4 * MB) / 7)}`;
  const slow = hasty.parse(Buffer.from(head + multipart("mixed", "b", [page, page, page, page])));
  const behind = [1, 2, 3].map((number) => hasty.parse(rawMail({ text: `mail ${number}` })));
  const outcome = await slow;
  expect(problem(outcome)).toBe("too_slow");
  expect(outcome.ok ? "" : outcome.message).toContain("Send it again");
  const texts = (await Promise.all(behind)).map((one) => (one.ok ? one.mail.new_text : one.problem));
  expect(texts).toEqual(["mail 1", "mail 2", "mail 3"]);
});

test("a mail that the machine gives no time is said to be so", async () => {
  const limits = { read_within_ms: 1, more_ms_per_mb: 0, measure: () => () => 0, pauses_ms: [0] };
  await using hasty = createMailParser(limits);
  const page = `Content-Type: text/html\r\n\r\n${"<p></p>".repeat((4 * MB) / 7)}`;
  const outcome = await hasty.parse(Buffer.from(head + multipart("mixed", "b", [page, page])));
  expect(outcome).toMatchObject({ ok: false, problem: "held_up" });
  expect(outcome.ok ? "" : outcome.message).toBe(
    "The server was too busy to read the mail, so nothing of it was read. Send it again later.",
  );
});

test("mutated mails never throw and never hang", async () => {
  const seeds = [
    rawMail({
      text: "Do it.\n\nOn 3 May 2024, Bob <b@x.org> wrote:\n> old",
      html: `<p style="color:red">Do it.</p><blockquote>old</blockquote>`,
      attachments: [{ filename: "a.pdf", content: "pdf" }],
    }),
    Buffer.from(nested(5)),
    Buffer.from(
      `${head}Content-Type: text/plain; charset=iso-2022-jp; format=flowed\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=1B$B@$3&=1B(B \r\n> x`,
    ),
    rawMail({
      attachments: [
        { filename: "m.eml", content_type: "message/rfc822", content: rawMail({ text: "inner" }) },
      ],
    }),
  ];
  const mutation = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.nat({ max: 200 }),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc
        .constantFrom(
          "\r\n",
          "\r\n\r\n",
          "--=_mixed",
          "--b1--\r\n",
          "=?",
          "<",
          "\0",
          'boundary=""',
          "charset=utf-7",
          "%00",
        )
        .map((text) => Buffer.from(text)),
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...seeds),
      fc.array(mutation, { minLength: 1, maxLength: 6 }),
      async (seed, mutations) => {
        let raw: Buffer = seed;
        for (const { at, cut, insert } of mutations) {
          const from = Math.floor(at * raw.length);
          raw = Buffer.concat([raw.subarray(0, from), insert, raw.subarray(from + cut)]);
        }
        const outcome = await parser.parse(raw);
        if (outcome.ok) expect(outcome.mail.new_text + outcome.mail.rest_text).toBeString();
        else
          expect(["too_many_parts", "too_deep", "headers_too_large", "crashed"]).toContain(outcome.problem);
      },
    ),
    { numRuns: 1_500, interruptAfterTimeLimit: 8_000 },
  );
}, 20_000);
