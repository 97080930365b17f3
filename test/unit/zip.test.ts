import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { safeFileName } from "../../src/operation/export/file-names.ts";
import { zipOf, type ZipEntry } from "../../src/lib/zip.ts";
import { namesIn, unzip } from "../support/unzip.ts";

const MODIFIED = Date.UTC(2026, 0, 15, 12) / 1_000;

test("another program reads what was written: empty files, long ones, many pieces, names of any language", async () => {
  const noise = crypto.getRandomValues(new Uint8Array(60_000));
  const contents: [string, Uint8Array[]][] = [
    ["empty.txt", []],
    ["also-empty.txt", [new Uint8Array(0)]],
    ["one.txt", [Buffer.from("one")]],
    ["pieces.txt", Array.from({ length: 500 }, (_, index) => Buffer.from(`piece ${index}\n`))],
    ["folder/größe 日本.bin", [noise, Buffer.alloc(3_000_000, "x"), noise]],
  ];
  const files = await unzip(await archiveOf(contents));
  expect([...files].map(([name, bytes]) => [name, Bun.hash.crc32(bytes)])).toEqual(
    contents.map(([name, pieces]) => [name, Bun.hash.crc32(Buffer.concat(pieces))]),
  );
});

test("what may be larger than 4 GB is written in the wide form, which others read as well", async () => {
  const path = join(await mkdtemp(join(tmpdir(), "mailwright-zip-")), "wide.zip");
  await Bun.write(
    path,
    await archiveOf(
      [
        ["one.txt", [Buffer.from("one")]],
        ["empty", []],
      ],
      true,
    ),
  );
  const tools = [
    ["unzip", "-tq", path],
    ["python3", "-m", "zipfile", "-t", path],
  ].filter(([tool = ""]) => Bun.which(tool) !== null);
  for (const tool of tools) expect([tool[0], Bun.spawnSync(tool).exitCode]).toEqual([tool[0], 0]);
  expect(await unzip(await Bun.file(path).bytes())).toEqual(
    new Map([
      ["one.txt", Buffer.from("one")],
      ["empty", Buffer.alloc(0)],
    ]),
  );
  await rm(dirname(path), { recursive: true });
});

test("an archive may have more entries than the old form of the format can count", async () => {
  const names = Array.from({ length: 66_000 }, (_, index) => `${index}.txt`);
  const archive = await archiveOf(names.map((name) => [name, []]));
  expect(await namesIn(archive)).toEqual(names);
});

test("nothing is read before it is asked for, and who stops reading ends it", async () => {
  const read: number[] = [];
  let ended = false;
  async function* endless(): AsyncGenerator<ZipEntry> {
    try {
      for (let index = 0; ; index += 1) {
        read.push(index);
        const content = [crypto.getRandomValues(new Uint8Array(60_000))];
        yield { name: `${index}.bin`, modified: MODIFIED, content };
      }
    } finally {
      ended = true;
    }
  }
  const archive = zipOf(endless());
  expect(read).toEqual([]);
  await archive.next();
  await archive.next();
  expect(read.length).toBeLessThan(6);
  await archive.return(undefined);
  expect(ended).toBe(true);
});

test("a fault of an entry is the archive's, which is not closed as if it were whole", async () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("the disk is gone");
  }
  async function* entries(): AsyncGenerator<ZipEntry> {
    yield { name: "half.txt", modified: MODIFIED, content: broken() };
  }
  const read = Array.fromAsync(zipOf(entries()));
  expect(await read.catch((error: Error) => error.message)).toBe("the disk is gone");
});

describe("names of files", () => {
  const cases: [string, string][] = [
    ["report.pdf", "report.pdf"],
    ["../../etc/passwd", "__.._etc_passwd"],
    ["..\\..\\boot.ini", "__.._boot.ini"],
    ["/etc/passwd", "_etc_passwd"],
    ["C:\\x.txt", "C__x.txt"],
    ["..", "_"],
    [".", "_"],
    ["", "file"],
    ["  ", "_"],
    [".env", "_env"],
    ["con", "_con"],
    ["LPT1.txt", "_LPT1.txt"],
    ["a\u0000b\n\u202ec.txt", "a_b__c.txt"],
    ["lone\ud800.txt", "lone\ufffd.txt"],
    ["trailing. . ", "trailing"],
    [`${"long ".repeat(100)}.docx`, `${"long ".repeat(20)}.docx`],
    ["x".repeat(300), "x".repeat(100)],
    ["Größe 日本.txt", "Größe 日本.txt"],
  ];
  test.each(cases)("%j is safe", (given, safe) => {
    expect(safeFileName(given, new Set())).toBe(safe);
  });

  test("two that are called the same, or would be on another system, are told apart", () => {
    const taken = new Set<string>();
    const names = ["a.txt", "A.TXT", "a.txt", "a (2).txt", "a?.txt", "a*.txt"];
    expect(names.map((name) => safeFileName(name, taken))).toEqual([
      "a.txt",
      "A (2).TXT",
      "a (3).txt",
      "a (2) (2).txt",
      "a_.txt",
      "a_ (2).txt",
    ]);
  });
});

async function archiveOf(contents: [string, Uint8Array[]][], large = false): Promise<Buffer> {
  async function* entries(): AsyncGenerator<ZipEntry> {
    for (const [name, content] of contents) yield { name, modified: MODIFIED, large, content };
  }
  return Buffer.concat(await Array.fromAsync(zipOf(entries())));
}
