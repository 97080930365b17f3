import { afterAll, describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync, gunzipSync } from "node:zlib";
import fc from "fast-check";
import { createFileReader } from "../../../src/files/reader.ts";
import type { FileReading, FileToRead } from "../../../src/files/reading.ts";
import {
  docxParts,
  fileOf,
  fixture,
  packedBlanks,
  paragraph,
  pdfOf,
  pdfOfPages,
  pngOf,
  words,
  xlsxParts,
  zipOf,
  zlibBlanks,
} from "../../support/files.ts";
import { watchThread } from "../../support/own-time.ts";
import { MB } from "../../../src/lib/sizes.ts";

/**
 * How long one bomb may take, so that a row of them does not take long; honest files have the time they have in
 * earnest.
 */
const BOMB_WITHIN_MS = 500;
/** The longest any other session may be held up (goals: 60 ms), generously. */
const MAX_HOLD_MS = 250;
const MAX_GROWTH_BYTES = 900 * MB;
const NEVER = new AbortController().signal;
const GOOD = fileOf("good.txt", "still read", "text/plain");

const reader = createFileReader();
const strict = createFileReader({ read_file_within_ms: BOMB_WITHIN_MS });

afterAll(() => Promise.all([reader, strict].map((one) => one[Symbol.asyncDispose]())));

async function read(file: FileToRead): Promise<FileReading> {
  const [reading] = await reader.read([file], NEVER);
  if (!reading) throw new Error("there should be a reading");
  return reading;
}

const LAUGHS = `<!DOCTYPE lolz [<!ENTITY a "ha">${Array.from({ length: 9 }, (_, n) => {
  const [name, inner] = [String.fromCharCode(98 + n), String.fromCharCode(97 + n)];
  return `<!ENTITY ${name} "${`&${inner};`.repeat(10)}">`;
}).join("")}]>`;

describe("a document that unpacks to more than it should", () => {
  const bomb = { name: "word/media/a.bin", content: "", packed: packedBlanks(1_024) };
  const others = docxParts(paragraph("Hello"));
  const cases: [string, FileToRead, string][] = [
    [
      "says so itself",
      fileOf("a.docx", zipOf([...others, { ...bomb, claimed: 1_024 * MB }])),
      "unpacks to far more than its own size",
    ],
    ["lies about it", fileOf("a.docx", zipOf([...others, { ...bomb, claimed: 1_000 }])), "is damaged"],
    [
      "does it in many parts",
      fileOf(
        "a.xlsx",
        zipOf([
          ...xlsxParts(""),
          ...Array.from({ length: 30 }, (_, n) => ({
            ...bomb,
            name: `${n}`,
            packed: packedBlanks(16),
            claimed: 16 * MB,
          })),
        ]),
      ),
      "unpacks to far more than its own size",
    ],
    [
      "has thousands of parts",
      fileOf(
        "a.docx",
        zipOf([...others, ...Array.from({ length: 5_001 }, (_, n) => ({ name: `${n}`, content: "" }))]),
      ),
      "has more than 5,000 parts",
    ],
    [
      "is encrypted",
      fileOf("a.docx", zipOf(others.map((part) => ({ ...part, encrypted: true })))),
      "is protected with a password",
    ],
  ];
  test.each(cases)("is not unpacked when it %s", async (_claim, file, reason) => {
    // The words say that it was not the time that ran out.
    expect((await read(file)).note).toBe(`Not read: ${file.filename} ${reason}.`);
  });

  test("an archive with a table that hides from other readers is not handed to one", async () => {
    const inner = zipOf(docxParts(paragraph("Hidden")));
    for (const bytes of [Buffer.concat([Buffer.from("PK"), inner]), Buffer.concat([inner, Buffer.from("x")])])
      expect(await read(fileOf("a.docx", new Uint8Array(bytes)))).toMatchObject({ text: "" });
  });
});

describe("entities that expand a billion times", () => {
  test.each([
    ["a Word document", fileOf("a.docx", zipOf(docxParts(paragraph("x&j;"), LAUGHS)))],
    [
      "a workbook",
      fileOf(
        "a.xlsx",
        zipOf(xlsxParts(`<row r="1"><c r="A1" t="inlineStr"><is><t>x&amp;j;&j;</t></is></c></row>`, LAUGHS)),
      ),
    ],
    [
      "an OpenDocument",
      fileOf("a.odt", zipOf([{ name: "content.xml", content: `${LAUGHS}<a><text:p>x&j;</text:p></a>` }])),
    ],
    ["plain XML", fileOf("a.xml", `${LAUGHS}<a>&j;</a>`)],
    ["a drawing", fileOf("a.svg", `${LAUGHS}<svg>&j;</svg>`)],
  ])("do not in %s", async (_claim, file) => {
    const { text, note } = await read(file);
    expect(text).not.toContain("hahaha");
    expect(text.length).toBeLessThan(2_000);
    expect(note).not.toContain("too");
  });
});

const white = gunzipSync((await fixture("white.heic.gz")).bytes);

describe("a file that takes all the time or memory it gets", () => {
  const far = `<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>`;
  const empty = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 6 8] >>";
  const kids = Array.from({ length: 100_000 }, (_, n) => `${n + 3} 0 R`).join(" ");
  const cases: [string, FileToRead][] = [
    [
      "a PDF packed twice",
      fileOf("a.pdf", pdfOfPages([deflateSync(zlibBlanks(16_000))], "[/FlateDecode /FlateDecode]")),
    ],
    [
      "a PDF of 100,000 pages",
      fileOf(
        "a.pdf",
        pdfOf([
          "<< /Type /Catalog /Pages 2 0 R >>",
          `<< /Type /Pages /Kids [${kids}] /Count 100000 >>`,
          ...Array<string>(100_000).fill(empty),
        ]),
      ),
    ],
    ["a picture of 49 megapixels of white", fileOf("a.heic", white)],
    ["a PDF whose pages are each other's", fileOf("a.pdf", circularPdf())],
    ["a workbook with one cell, the last one of all", fileOf("a.xlsx", zipOf(xlsxParts(far)))],
    ["a Word document 20,000 elements deep", fileOf("a.docx", zipOf(docxParts(deep("w:p", 20_000))))],
    ["a page of 200,000 open elements", fileOf("a.html", "<div>".repeat(200_000))],
  ];

  test.each(cases)("costs the file beside it nothing: %s", async (_claim, file) => {
    const before = process.memoryUsage.rss();
    const watch = watchThread();
    const [first, second] = await strict.read([file, GOOD], NEVER);
    const held_ms = watch.longestMs();
    expect(first?.note ?? "").not.toBe("");
    expect(second).toMatchObject({ text: "still read", note: "" });
    expect(held_ms).toBeLessThan(MAX_HOLD_MS);
    expect(process.memoryUsage.rss() - before).toBeLessThan(MAX_GROWTH_BYTES);
  });

  test("is given up for its memory, however much time it has", async () => {
    await using patient = createFileReader({ read_file_within_ms: 60_000, read_all_within_ms: 180_000 });
    const bomb = fileOf("a.pdf", pdfOfPages([zlibBlanks(1_024)], "/FlateDecode"));
    const [first, second] = await patient.read([bomb, GOOD], NEVER);
    expect(first?.note).toBe("Not read: a.pdf takes too much memory to read.");
    expect(second).toMatchObject({ text: "still read", note: "" });
  });

  test("uses up the time of its own message, not that of others", async () => {
    await using hurried = createFileReader({ read_file_within_ms: 200, read_all_within_ms: 300 });
    const slow = fileOf(
      "slow.pdf",
      pdfOfPages([deflateSync(zlibBlanks(400))], "[/FlateDecode /FlateDecode]"),
    );
    const [notes, other] = await Promise.all([
      hurried.read([slow, slow, slow, GOOD], NEVER).then((readings) => readings.map(({ note }) => note)),
      hurried.read([GOOD], NEVER),
    ]);
    expect(notes[0]).toBe("Not read: slow.pdf takes too long to read.");
    expect(notes[2]).toBe("Not read: slow.pdf (reading the other files took too long).");
    expect(notes[3]).toBe("Not read: good.txt (reading the other files took too long).");
    expect(other[0]).toMatchObject({ text: "still read" });
  });
});

describe("long files", () => {
  test.each([
    ["a CSV of 10,000 columns", fileOf("a.csv", `${"column,".repeat(10_000)}\n`.repeat(20))],
    ["a JSON text 100,000 deep", fileOf("a.json", "[".repeat(150_000))],
    ["a workbook", fileOf("a.xlsx", zipOf(xlsxParts(manyRows(3_000))))],
    ["a PDF", fileOf("a.pdf", pdfOfPages(Array(40).fill(words(...Array(60).fill("word ".repeat(15))))))],
  ])("of %s the first 100,000 characters are read, and it is said", async (_claim, file) => {
    const { text, note, summary } = await read(file);
    expect(text.length).toBe(100_000);
    expect(note).toBe(`Of ${file.filename} only the first 100,000 characters were read.`);
    expect(summary).toEndWith("100,000 characters");
  });
});

describe("damage", () => {
  test("no file cut off anywhere goes without an answer", async () => {
    const names = (await readdir(join(import.meta.dir, "../../fixtures/files"))).filter(
      (name) => !name.endsWith(".md"),
    );
    for (const name of names) {
      const { bytes } = await fixture(name);
      const cut = [1, 100, bytes.length >> 1, bytes.length - 1].map((length) =>
        fileOf(name, bytes.slice(0, length)),
      );
      for (const reading of await reader.read(cut, NEVER)) expectAnswer(reading);
    }
  });

  const ENDINGS =
    "pdf docx xlsx odt csv html txt json xml yaml ics vcf eml png jpg gif webp heic bmp zip svg bin".split(
      " ",
    );

  test("random bytes, whatever they are called, do not go without an answer", async () => {
    const some = fc.record({
      ending: fc.constantFrom(...ENDINGS),
      bytes: fc.uint8Array({ maxLength: 2_000 }),
    });
    await fc.assert(
      fc.asyncProperty(some, async ({ ending, bytes }) => {
        expectAnswer(await read(fileOf(`a.${ending}`, new Uint8Array(bytes))));
      }),
      { numRuns: 100 },
    );
  });

  test("real files with bytes that were changed do not go without an answer", async () => {
    const names = [
      "report.docx",
      "two-sheets.xlsx",
      "sheet.ods",
      "ghostscript.pdf",
      "scan.png",
      "scan.webp",
      "scan.gif",
      "scan.heic",
    ];
    const files = await Promise.all(names.map((name) => fixture(name)));
    const some = fc.record({
      file: fc.constantFrom(...files),
      changes: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 20 }),
    });
    await fc.assert(
      fc.asyncProperty(some, async ({ file, changes }) => {
        const bytes = new Uint8Array(file.bytes);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        expectAnswer(await read({ ...file, bytes }));
      }),
      { numRuns: 100 },
    );
  });
});

test("a picture of 49 megapixels is made small, in bounded memory", async () => {
  const before = process.memoryUsage.rss();
  const { image, note } = await read(fileOf("a.png", pngOf(7_000, 7_000)));
  expect(note).toBe("");
  expect(image?.content_type).toBe("image/png");
  expect(process.memoryUsage.rss() - before).toBeLessThan(MAX_GROWTH_BYTES);
});

/** Something was read, or it is said why not. */
function expectAnswer({ text, image, note, summary }: FileReading): void {
  expect(text !== "" || image !== undefined || note !== "" || summary !== "").toBe(true);
  expect(note === "" || /^(Not read: |Of )/.test(note)).toBe(true);
}

function circularPdf(): Uint8Array<ArrayBuffer> {
  return pdfOf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1000000 >>",
    "<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 1000000 >>",
  ]);
}

function deep(element: string, levels: number): string {
  return `${`<${element}>`.repeat(levels)}${`</${element}>`.repeat(levels)}`;
}

function manyRows(rows: number): string {
  const cell = (row: number, column: string): string =>
    `<c r="${column}${row}" t="inlineStr"><is><t>some words in a cell</t></is></c>`;
  return Array.from(
    { length: rows },
    (_, n) => `<row r="${n + 1}">${cell(n + 1, "A")}${cell(n + 1, "B")}</row>`,
  ).join("");
}
