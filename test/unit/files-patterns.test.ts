import { afterAll, describe, expect, test } from "bun:test";
import { createFileReader } from "../../src/files/reader.ts";
import type { FileReading } from "../../src/files/reading.ts";
import { refuseSlowXml } from "../../src/files/xlsx-xml.ts";
import { withShortBlanks } from "../../src/lib/short-blanks.ts";
import { docxParts, fileOf, paragraph, xlsxParts, type ZipPart, zipOf } from "../support/files.ts";

const NEVER = new AbortController().signal;
const DAMAGED = "is damaged or built in a way that can't be read.";
const reader = createFileReader();

afterAll(() => reader[Symbol.asyncDispose]());

async function read(filename: string, parts: ZipPart[]): Promise<FileReading> {
  const [reading] = await reader.read([fileOf(filename, zipOf(parts))], NEVER);
  if (!reading) throw new Error("there should be a reading");
  return reading;
}

/** A field of a Word document with this instruction, and the words "Hello" as its result. */
function field(instruction: string): string {
  const char = (type: string) => `<w:r><w:fldChar w:fldCharType="${type}"/></w:r>`;
  return `<w:p>${char("begin")}<w:r><w:instrText xml:space="preserve">${instruction}</w:instrText></w:r>${char("separate")}<w:r><w:t>Hello</w:t></w:r>${char("end")}</w:p>`;
}

/** The parts of a workbook whose one cell has this number format. */
function formatted(format: string): ZipPart[] {
  const styles = `<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="1"><numFmt numFmtId="164" formatCode="${format}"/></numFmts><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>`;
  const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
  return [
    ...xlsxParts('<row r="1"><c r="A1" s="1"><v>5</v></c></row>').map((part) =>
      part.name.endsWith("workbook.xml.rels")
        ? {
            ...part,
            content: String(part.content).replace(
              "</Relationships>",
              `<Relationship Id="rId2" Type="${office}/styles" Target="styles.xml"/></Relationships>`,
            ),
          }
        : part,
    ),
    { name: "xl/styles.xml", content: styles },
  ];
}

describe("a file on which a library would take the square of a length, and could not be ended", () => {
  test("is a Word document with a field of nine million blanks, which is read", async () => {
    const { text, note } = await read("a.docx", docxParts(field(`x${" ".repeat(9_000_000)}y`)));
    expect([text, note]).toEqual(["Hello", ""]);
  });

  test("is a Word document with declarations, which is refused", async () => {
    const { note } = await read("a.docx", docxParts(paragraph("Hello"), "<!DOCTYPE w [<!ENTITY a 'b'>]>"));
    expect(note).toBe(`Not read: a.docx ${DAMAGED}`);
  });

  test("is a workbook with a number format of many brackets, which is refused", async () => {
    const { note } = await read("a.xlsx", formatted("[".repeat(2_000_000)));
    expect(note).toBe(`Not read: a.xlsx ${DAMAGED}`);
  });

  test("is a workbook with a long name of an element, which is refused", async () => {
    const { note } = await read("a.xlsx", xlsxParts(`<a${"b".repeat(2_000_000)}/>`));
    expect(note).toBe(`Not read: a.xlsx ${DAMAGED}`);
  });

  test("is no workbook with an ordinary number format", async () => {
    const { text, note } = await read("a.xlsx", formatted("[$-409]#,##0.00"));
    expect([text, note]).toEqual(["Sheet One:\n5\n", ""]);
  });
});

test.each([
  ["behind CDATA", `<![CDATA[<]]>`],
  ["behind a comment with a quote", `<!-- " -->`],
  ["behind an instruction", `<?a "?>`],
  ["behind a quote that is never closed", `<a ">`],
  ["in a value with what would end the tag", `<a b=">" c='>`],
])("a long tag of number formats is found %s", (_what, before) => {
  expect(() => refuseSlowXml(`${before}<numFmt formatCode='${"[<".repeat(50_000)}'/>`)).toThrow(
    DAMAGED.slice(0, -1),
  );
});

test.each([
  ["a  b", "a  b"],
  [`a${" ".repeat(100)}b`, `a${" ".repeat(100)}b`],
  [`a${" ".repeat(101)}b`, "a b"],
  [`a${" \n\t".repeat(101)}b`, "a\nb"],
])("of blanks in %j is left %j", (text, short) => {
  expect(withShortBlanks(text)).toBe(short);
});
