import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { type App, createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { damagedIndexes } from "../../src/db/index-faults.ts";
import { messageOf } from "../../src/errors.ts";
import { createLog } from "../../src/lib/log.ts";
import { lookThroughDaily } from "../../src/jobs/mend.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { sweepFiles } from "../../src/operation/retention/tidy-segments.ts";
import { until } from "../support/until.ts";
import { layKeys } from "../support/keys.ts";
import { lettersOf, storeMail } from "../support/mail-files.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const ALL = Object.fromEntries(LETTERS.split("").map((letter) => [letter, letter]));
const never = new AbortController().signal;

let base: string;
let sound: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "mailwright-indexes-"));
  sound = join(base, "sound");
  await layKeys(sound);
  {
    await using app = await start(sound);
    for (const letter of LETTERS) await storeMail(app, letter);
  }
  const sqlite = new Sqlite(join(sound, "mailwright.db"));
  sqlite.pragma("journal_mode = DELETE");
  sqlite.close();
});
afterAll(() => rm(base, { recursive: true, force: true }));

type Page = { bytes: Buffer; cell: (index: number) => number };

/** A copy of the folder in which the only page of an index is damaged. */
async function damagedFolder(name: string, index: string, damage: (page: Page) => void): Promise<string> {
  const dir = join(base, name);
  await cp(sound, dir, { recursive: true });
  const path = join(dir, "mailwright.db");
  const sqlite = new Sqlite(path, { readonly: true });
  const root = sqlite
    .prepare("select rootpage from sqlite_schema where name = ?")
    .pluck()
    .get(index) as number;
  const size = sqlite.pragma("page_size", { simple: true }) as number;
  sqlite.close();
  await using file = await open(path, "r+");
  const bytes = Buffer.alloc(size);
  await file.read(bytes, 0, size, (root - 1) * size);
  // A leaf of an index: its cells begin where the numbers behind its head say.
  expect(bytes[0]).toBe(10);
  damage({ bytes, cell: (at) => bytes.readUInt16BE(8 + 2 * at) });
  await file.write(bytes, 0, size, (root - 1) * size);
  return dir;
}

/** One bit of the count of entries. */
function loseEntries({ bytes }: Page): void {
  expect(bytes.readUInt16BE(3)).toBe(LETTERS.length);
  bytes.writeUInt16BE(LETTERS.length ^ 16, 3);
}

/** One bit of the last column that an entry has of its row: the lowest one of a size. */
function changeEntry({ bytes, cell }: Page): void {
  const at = cell(20) + 1 + (bytes[cell(20)] as number) - 2;
  bytes[at] = (bytes[at] as number) ^ 1;
}

/** An app as a server has it, which looks through its database, or as a command line has it. */
function start(dir: string, as: "server" | "command line" = "command line"): Promise<App> {
  return createApp(defaultConfig({ data: { dir }, smtp: { hostname: "mx.mw.test" } }), {
    log: createLog({ level: "silent", format: "text" }),
    ...(as === "server" ? { worker: (app: App) => createWorker(app, jobHandlers(app)) } : {}),
  });
}

async function mailsIn(app: App): Promise<number> {
  const { rows } = await sql<{ mails: number }>`select count(*) as mails from raw_mails
    indexed by raw_mails_segment where segment is not null`.execute(app.db);
  return rows[0]?.mails ?? 0;
}

test("an index that lost entries is made anew at a start, before anything is ended or erased by it", async () => {
  const dir = await damagedFolder("start", "raw_mails_segment", loseEntries);
  {
    await using app = await start(dir);
    expect(await mailsIn(app)).toBeLessThan(LETTERS.length);
  }
  await using app = await start(dir, "server");
  expect(await mailsIn(app)).toBe(LETTERS.length);
  expect(await app.upkeep.lookThrough()).toBe("sound");
});

test("what lies in the files of mails is not overwritten by an index that lost entries, which is mended instead", async () => {
  const dir = await damagedFolder("sweep", "raw_mails_segment", loseEntries);
  await using app = await start(dir);
  expect(await sweepFiles(app, never)).toBe(false);
  expect(await sweepFiles(app, never)).toBe(true);
  expect(await lettersOf(app)).toEqual(ALL);
});

test("nor where an index has places that the rows do not have: nobody knows which are right", async () => {
  const dir = await damagedFolder("places", "raw_mails_segment", changeEntry);
  await using app = await start(dir);
  expect(await sweepFiles(app, never)).toBe(true);
  expect(await app.upkeep.lookThrough()).toBe("damaged");
  expect(await lettersOf(app)).toEqual(ALL);
});

test("a server looks once a day", async () => {
  const dir = await damagedFolder("daily", "raw_mails_segment", loseEntries);
  await using app = await start(dir);
  let now = 0;
  const clock = { steadyNow: () => now, steadyAfter: (seconds: number) => now + seconds };
  const look = lookThroughDaily(Object.assign(app, clock));
  for (now of [3_600, 86_399]) await look();
  expect(await mailsIn(app)).toBeLessThan(LETTERS.length);
  now = 86_400;
  await look();
  expect(await mailsIn(app)).toBe(LETTERS.length);
});

test("damage of an index that SQLite notices is mended while the server runs, and nothing has to be restored", async () => {
  const dir = await damagedFolder("noticed", "sqlite_autoindex_raw_mails_1", loseEntries);
  await using app = await start(dir);
  const malformed = Object.assign(new Error("malformed"), { code: "SQLITE_CORRUPT" });
  expect(await app.write(() => Promise.reject(malformed)).catch(messageOf)).toBe("malformed");
  expect(await storeMail(app, "A").catch(messageOf)).toBe("malformed");
  await until(() =>
    storeMail(app, "A").then(
      () => true,
      () => false,
    ),
  );
  expect(await lettersOf(app)).toEqual({ ...ALL, A: "A" });
  expect(await app.upkeep.lookThrough()).toBe("sound");
});

test("a large database is looked through as well", async () => {
  const dir = await damagedFolder("large", "sqlite_autoindex_raw_mails_1", loseEntries);
  await using app = await start(dir);
  await app.db
    .insertInto("raw_mails")
    .values({ id: "large", bytes: Buffer.alloc(2_000_000), size: 2_000_000, created: 0 })
    .execute();
  expect(await app.upkeep.lookThrough()).toBe("mended");
  expect(await lettersOf(app)).toMatchObject(ALL);
});

test("what is made anew is an index that does not lead to all rows, and nothing where rows may be lost", () => {
  const page = "*** in database main ***\nFragmentation of 192 bytes reported as 0 on page 4";
  expect(damagedIndexes([page, "wrong # of entries in index i", "row 9 missing from index i"])).toEqual([
    "i",
  ]);
  expect(damagedIndexes(["non-unique entry in index i", "row 11 missing from index i"])).toEqual(["i"]);
  expect(damagedIndexes([page, "wrong # of entries in index i"])).toBeUndefined();
  expect(damagedIndexes(["row 9 missing from index i", "wrong # of entries in index j"])).toBeUndefined();
  expect(
    damagedIndexes(["row 9 missing from index i", "Tree 3 page 3: 2nd reference to page 4"]),
  ).toBeUndefined();
  expect(damagedIndexes([page])).toBeUndefined();
});
