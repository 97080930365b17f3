import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { restoreBackup } from "../../src/backup/restore.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { type App, createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
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

/** The first byte of a leaf of an index, and of one of a table. */
const [INDEX, TABLE] = [10, 13];

/** A copy of the folder in which the only page of an index, or the first one of a table, is damaged. */
async function damagedFolder(
  name: string,
  tree: string,
  damage: (page: Page) => void,
  kind = INDEX,
): Promise<string> {
  const dir = join(base, name);
  await cp(sound, dir, { recursive: true });
  const path = join(dir, "mailwright.db");
  const sqlite = new Sqlite(path, { readonly: true });
  const page = sqlite
    .prepare("select min(pageno) from dbstat where name = ? and pagetype = 'leaf'")
    .pluck()
    .get(tree) as number;
  const size = sqlite.pragma("page_size", { simple: true }) as number;
  sqlite.close();
  await using file = await open(path, "r+");
  const bytes = Buffer.alloc(size);
  await file.read(bytes, 0, size, (page - 1) * size);
  // The cells of a leaf begin where the numbers behind its head say.
  expect(bytes[0]).toBe(kind);
  damage({ bytes, cell: (at) => bytes.readUInt16BE(8 + 2 * at) });
  await file.write(bytes, 0, size, (page - 1) * size);
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

test("what lies in the files of mails is not overwritten where an index has places that the rows do not have: nobody knows which are right", async () => {
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

/** One bit of the header of a page: its place, and the bit. */
const HEADERS: [string, number, number][] = [
  ["count of cells", 4, 16],
  ["count of cells, with more than there are", 4, 32],
  ["count of fragmented bytes", 7, 4],
  ["begin of the cells", 5, 1],
  ["place of a cell", 8, 64],
];

test.each(HEADERS)(
  "a flipped bit in the header of the page of an index (%s) ends no start, and is mended",
  async (what, at, bit) => {
    const index = "sqlite_autoindex_raw_mails_1";
    const flip = ({ bytes }: Page) => void (bytes[at] = (bytes[at] as number) ^ bit);
    const dir = await damagedFolder(`header ${what}`, index, flip);
    await using app = await start(dir, "server");
    expect(await app.upkeep.lookThrough()).toBe("sound");
    await storeMail(app, "A");
    expect(await lettersOf(app)).toEqual({ ...ALL, A: "A" });
  },
);

test("one that only says how much room is free in a page of a table ends none either, and is mended", async () => {
  const dir = await damagedFolder("worn", "raw_mails", ({ bytes }) => void (bytes[7] = 4), TABLE);
  await using app = await start(dir, "server");
  expect(await app.upkeep.lookThrough()).toBe("sound");
  await storeMail(app, "A");
  expect(await lettersOf(app)).toEqual({ ...ALL, A: "A" });
});

test("one by which a table loses rows is real damage: its indexes tell of them, and stay as they are", async () => {
  const dir = await damagedFolder(
    "rows",
    "raw_mails",
    ({ bytes }) => bytes.writeUInt16BE(bytes.readUInt16BE(3) ^ 2, 3),
    TABLE,
  );
  await using app = await start(dir, "server");
  expect(await app.upkeep.lookThrough()).toBe("damaged");
  expect(await storeMail(app, "A").catch(messageOf)).toBeString();
  expect(await mailsIn(app)).toBe(LETTERS.length);
});

/** Makes a backup of a folder, and restores it into an empty one. */
async function throughBackup(dir: string): Promise<string> {
  const archive = join(base, "backup.zip");
  const to = `${dir}-restored`;
  const config = (of: string) => defaultConfig({ data: { dir: of }, smtp: { hostname: "mx.mw.test" } });
  await backupToFile(sourceOf(config(dir), 0), archive, never);
  await restoreBackup(config(to), archive, { now: 0, hold: false, confirm: async () => true });
  return to;
}

test("a backup of a database with a damaged index can be restored, and has all rows", async () => {
  const dir = await damagedFolder("backup", "sqlite_autoindex_raw_mails_1", loseEntries);
  await using app = await start(await throughBackup(dir));
  expect(await lettersOf(app)).toEqual(ALL);
});

test("none is made where a table has lost rows, so that no good one is deleted for it", async () => {
  const damage = ({ bytes }: Page) => bytes.writeUInt16BE(bytes.readUInt16BE(3) - 1, 3);
  const dir = await damagedFolder("no backup", "raw_mails", damage, TABLE);
  const words = await throughBackup(dir).catch(messageOf);
  expect(words).toContain("The database is damaged, so no backup was made");
});
