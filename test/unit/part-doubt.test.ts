import { describe, expect, test } from "bun:test";
import { readStructure } from "../../src/mail/reading/parse-structure.ts";
import { type Splitter, type SplitPart, watchBorders } from "../../src/mail/reading/part-doubt.ts";

const FIELDS = "Content-Type: text/plain; charset=utf-8\r\nX-Any: thing";
const MIXED = "Content-Type: multipart/mixed; boundary=XX";

interface Mail {
  /** The Content-Type of the mail itself. */
  type?: string;
  /** The header of its only part. */
  head?: string;
  body?: string;
  /** In place of the part with its borders. */
  whole?: string;
}

async function doubtOf({ type = MIXED, head = FIELDS, body = "Hello", whole }: Mail): Promise<string | null> {
  const parts = whole ?? `--XX\r\n${head}\r\n\r\n${body}\r\n--XX--\r\n`;
  const raw = `From: a@x.org\r\nMIME-Version: 1.0\r\n${type}\r\n\r\n${parts}`;
  return (await readStructure(Buffer.from(raw, "latin1"))).doubt;
}

const ENDS_ELSEWHERE = "the header of a part ends elsewhere for some programs";
const differs = (field: string): string => `the ${field} of a part can be read in two ways`;
const BORDER = "a line in it can be taken for the border between two parts, or not";
const HOLLOW = "it says that it is made of parts and has none";

/** What is doubted, and beside it the nearest that is not. */
const HEADERS: [name: string, doubtful: string, certain: string, why: string][] = [
  [
    "a NUL",
    "X-Any: a\0b",
    "X-Any: ab",
    "in the header of a part its line 1 holds the control character 0x00",
  ],
  [
    "a bare CR",
    "X-Any: a\rContent-Type: text/html",
    "X-Any: a Content-Type: text/html",
    "in the header of a part its line 1 holds a carriage return that ends no line",
  ],
  [
    "a line without a colon",
    "X-Any: a\r\nnonsense",
    "X-Any: a\r\n nonsense",
    "in the header of a part its line 2 is neither a field nor the continuation of one",
  ],
  [
    "a fold by a no-break space",
    "X-Any: a\r\n\xa0Content-Type: text/html",
    "X-Any: a\r\n Content-Type: text/html",
    "in the header of a part its line 2 is neither a field nor the continuation of one",
  ],
  [
    "a fold of nothing",
    " X-Any: a",
    "X-Any: a",
    "in the header of a part its first line continues a field that is not there",
  ],
  ["a fold of blanks alone", "X-Any: a\r\n \r\n b", "X-Any: a\r\n b", ENDS_ELSEWHERE],
  ["a last line of blanks", "X-Any: a\r\n\t", "X-Any: a\t", ENDS_ELSEWHERE],
  ["blanks before a colon", "X-Any : a", "X-Any: a", ENDS_ELSEWHERE],
  [
    "a second type",
    "Content-Type: text/plain\r\nContent-Type: text/html",
    "Content-Type: text/plain\r\nX-Type: text/html",
    "a part has more than one content-type field",
  ],
  [
    "a second disposition",
    "Content-Disposition: inline\r\ncontent-disposition: attachment",
    "Content-Disposition: inline\r\nX-Any: attachment",
    "a part has more than one content-disposition field",
  ],
  [
    "a second encoding",
    "Content-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: base64",
    "Content-Transfer-Encoding: 7bit\r\nX-Encoding: base64",
    "a part has more than one content-transfer-encoding field",
  ],
  [
    "a second id",
    "Content-ID: <a@x.org>\r\nContent-ID: <b@x.org>",
    "Content-ID: <a@x.org>\r\nX-ID: <b@x.org>",
    "a part has more than one content-id field",
  ],
  [
    "a second description",
    "Content-Description: a\r\nContent-Description: b",
    "Content-Description: a\r\nComments: b\r\nComments: c",
    "a part has more than one content-description field",
  ],
  [
    "a comment before a type",
    "Content-Type: (a) text/plain",
    "Content-Type: text/plain",
    differs("content-type"),
  ],
  [
    "a comment behind a type",
    "Content-Type: text/html (a)",
    "Content-Type: text/html",
    differs("content-type"),
  ],
  [
    "a border in a text",
    "Content-Type: text/plain; boundary=YY",
    "Content-Type: text/plain; border=YY",
    differs("content-type"),
  ],
  [
    "a charset whose quotes stand open",
    'Content-Type: text/plain; charset="utf-8',
    'Content-Type: text/plain; charset="utf-8"',
    differs("content-type"),
  ],
  [
    "a charset in which letters are others",
    "Content-Type: text/plain; charset=utf-7",
    "Content-Type: text/plain; charset=utf-8",
    differs("content-type"),
  ],
  [
    "two charsets",
    "Content-Type: text/plain; charset=utf-8; charset=utf-7",
    "Content-Type: text/plain; charset=utf-8; chars=utf-7",
    differs("content-type"),
  ],
  [
    "a charset in pieces",
    "Content-Type: text/plain; charset*0=utf; charset*1=-8",
    "Content-Type: text/plain; name*0=a; name*1=.txt",
    differs("content-type"),
  ],
  [
    "a comment behind what says that lines flow",
    "Content-Type: text/plain; format=flowed (a)",
    "Content-Type: text/plain; format=flowed",
    differs("content-type"),
  ],
  [
    "a blank before what says that lines flow",
    'Content-Type: text/plain; format=" flowed"',
    'Content-Type: text/plain; format="flowed"',
    differs("content-type"),
  ],
  [
    "a blank before what says that flowing lines are joined",
    'Content-Type: text/plain; format=flowed; delsp=" yes"',
    'Content-Type: text/plain; format=flowed; delsp="yes"',
    differs("content-type"),
  ],
  [
    "a file name that is empty once it is decoded",
    'Content-Disposition: inline; filename="=?utf-8?q??="',
    'Content-Disposition: inline; filename="=?utf-8?q?a?="',
    differs("content-disposition"),
  ],
  [
    "a comment before a disposition",
    "Content-Disposition: (a) attachment; filename=a.txt",
    "Content-Disposition: attachment; filename=a.txt",
    differs("content-disposition"),
  ],
  [
    "two file names",
    "Content-Disposition: attachment; filename=a.txt; filename=b.txt",
    "Content-Disposition: attachment; filename=a.txt; size=7",
    differs("content-disposition"),
  ],
  [
    "a parameter of an encoding",
    "Content-Transfer-Encoding: base64; a=b",
    "Content-Transfer-Encoding: base64",
    differs("content-transfer-encoding"),
  ],
  [
    "a comment before an encoding",
    "Content-Transfer-Encoding: (a) base64",
    "Content-Transfer-Encoding:  BASE64 ",
    differs("content-transfer-encoding"),
  ],
];

describe("the header of a part", () => {
  test.each(HEADERS)("with %s is doubted, without it is not", async (_, doubtful, certain, why) => {
    expect(await doubtOf({ head: doubtful })).toBe(why);
    expect(await doubtOf({ head: certain })).toBeNull();
  });
});

const INNER = "--YY\r\n\r\nHello\r\n--YY--";
const inner = (type: string, body = INNER): string => `--XX\r\n${type}\r\n\r\n${body}\r\n--XX--\r\n`;
const PARTED = inner("Content-Type: multipart/mixed; boundary=YY");

/** What is made of parts. */
const MADE_OF_PARTS: [name: string, doubtful: string, certain: string, why: string][] = [
  ["no border", inner("Content-Type: multipart/mixed"), PARTED, differs("content-type")],
  [
    "two borders",
    inner("Content-Type: multipart/mixed; boundary=YY; boundary=ZZ"),
    inner("Content-Type: multipart/mixed; boundary=YY; x=ZZ"),
    differs("content-type"),
  ],
  [
    "a border in pieces",
    inner("Content-Type: multipart/mixed; boundary*0=Y; boundary*1=Y"),
    inner("Content-Type: multipart/mixed; boundary=YY; name*0=Y; name*1=Y"),
    differs("content-type"),
  ],
  [
    "a border that ends with a blank",
    inner('Content-Type: multipart/mixed; boundary="YY "'),
    inner('Content-Type: multipart/mixed; boundary="Y Y"', INNER.replaceAll("--YY", "--Y Y")),
    differs("content-type"),
  ],
  [
    "an encoding of its own",
    inner("Content-Type: multipart/mixed; boundary=YY\r\nContent-Transfer-Encoding: base64"),
    inner("Content-Type: multipart/mixed; boundary=YY\r\nContent-Transfer-Encoding: 8bit"),
    differs("content-transfer-encoding"),
  ],
  ["no parts", inner("Content-Type: multipart/mixed; boundary=YY", "Hello"), PARTED, HOLLOW],
  ["an end before its beginning", `--XX--\r\n${PARTED}`, PARTED, BORDER],
  [
    "a header that no empty line ends",
    `--XX\r\n${FIELDS}\r\n${PARTED}`,
    `--XX\r\n${FIELDS}\r\n\r\n${PARTED}`,
    BORDER,
  ],
  [
    "a border of the outer one that blanks follow",
    PARTED.replace("Hello", "Hello\r\n--XX "),
    PARTED.replace("Hello", "Hello\r\n--XXX"),
    BORDER,
  ],
];

describe("what is made of parts", () => {
  test.each(MADE_OF_PARTS)("with %s is doubted, without it is not", async (_, doubtful, certain, why) => {
    expect(await doubtOf({ whole: doubtful })).toBe(why);
    expect(await doubtOf({ whole: certain })).toBeNull();
  });

  test("is doubted where the mail itself says so and has none", async () => {
    expect(await doubtOf({ whole: "Hello\r\n" })).toBe(HOLLOW);
    expect(await doubtOf({ type: "Content-Type: text/plain", whole: "Hello\r\n" })).toBeNull();
  });
});

/** A text between two real borders; the first of each pair is one to some programs. */
const LINES: [name: string, doubtful: string, certain: string][] = [
  ["a space behind it", "--XX ", "--XX a"],
  ["a tab behind it", "--XX\t", "--XX\ta"],
  ["blanks behind it", "--XX \t ", "--XX \t ."],
  ["a space behind the last one", "--XX-- ", "--XX-- a"],
  ["a CR too many behind it", "--XX\r", "--XXa\r"],
  ["a CR too many behind the last one", "--XX--\r", "--XX--a"],
  ["a CR before it", "\r--XX", "\ra--XX"],
  ["a CR before it and a space behind", "\r--XX ", "\r --XX"],
];
const NO_BORDERS = [
  "",
  "--",
  "-- ",
  "--X",
  "--xx",
  "-XX",
  " --XX",
  "--XXX",
  "--XX-",
  "--XX-a",
  "XX",
  "--XX--XX",
];

describe("a line that is like a border", () => {
  test.each(LINES)("with %s is doubted, and nothing further from one", async (_, doubtful, certain) => {
    expect(await doubtOf({ body: `Hello\r\n${doubtful}\r\nBye` })).toBe(BORDER);
    expect(await doubtOf({ body: `Hello\r\n${certain}\r\nBye` })).toBeNull();
  });

  test.each(NO_BORDERS)("is not '%s'", async (line) => {
    expect(await doubtOf({ body: `Hello\r\n${line}\r\nBye` })).toBeNull();
  });
});

/** A part as it stands in others, the innermost first; false is one that is not made of parts. */
function within(...borders: (string | false)[]): SplitPart {
  const [border = false, ...outer] = borders;
  const _parentBoundaryOwner: SplitPart | false = outer.length > 0 && within(...outer);
  return {
    contentType: false,
    disposition: false,
    encoding: false,
    charset: false,
    filename: false,
    flowed: false,
    delSp: false,
    multipart: false,
    headers: { getList: () => [] },
    _boundary: border !== false && Buffer.from(border),
    _parentBoundaryOwner,
    _headersLines: [],
    _headerlen: 0,
  };
}

/** Whether a line is doubted which the splitter takes for what `found` says. */
function isDoubted(
  line: string,
  { node = within("XX"), found = false }: { node?: SplitPart; found?: 1 | 2 | 3 | 4 | false } = {},
): boolean {
  let doubts = 0;
  const splitter: Splitter = { node, checkBoundary: () => found };
  watchBorders(splitter, () => (doubts += 1));
  expect(splitter.checkBoundary(Buffer.from(line, "latin1"))).toBe(found);
  return doubts > 0;
}

describe("a line that the splitter takes for no border", () => {
  test("is doubted where it is one of any part around it, however far out", () => {
    const deep = within("AA", "BB", false, "CC");
    for (const border of ["AA", "BB", "CC"])
      for (const line of [`--${border} \n`, `--${border}--\t\r\n`, `\r--${border}`])
        expect([line, isDoubted(line, { node: deep })]).toEqual([line, true]);
    expect(isDoubted("--DD \n", { node: deep })).toBe(false);
    expect(isDoubted("--AA \n", { node: within(false) })).toBe(false);
  });

  test("is not where the border only begins it, or it only begins the border", () => {
    const node = within("XX", "XX-YY");
    expect(isDoubted("--XX-YYY\r\n", { node })).toBe(false);
    expect(isDoubted("--XX-\r\n", { node })).toBe(false);
    expect(isDoubted("--XX-YY \r\n", { node })).toBe(true);
  });

  test("is compared byte by byte", () => {
    expect(isDoubted("--\xc3\xbc \n", { node: within("ü") })).toBe(true);
    expect(isDoubted("--\xfc \n", { node: within("ü") })).toBe(false);
  });
});

describe("a line that the splitter takes for a border", () => {
  test("is doubted behind a CR, in a header, and as the end of what has not begun", () => {
    for (const found of [1, 3, 4] as const) {
      expect(isDoubted("--XX\r\n", { found })).toBe(false);
      expect(isDoubted("\r--XX\r\n", { found })).toBe(true);
      expect(isDoubted("--XX\r\n", { found, node: { ...within("XX"), headers: false } })).toBe(false);
      const inHeader = { ...within("XX"), headers: false, _headerlen: 9 } as const;
      expect(isDoubted("--XX\r\n", { found, node: inHeader })).toBe(true);
    }
    expect(isDoubted("--XX--\r\n", { found: 2 })).toBe(true);
  });
});
