import { expect, test } from "bun:test";
import { chown, copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { storedLossWarning, recordLoss, readLogEnd } from "../../src/db/lost-commits.ts";

async function place() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-loss-"));
  const said: string[] = [];
  const say = (_: object, words: string) => void said.push(words);
  const path = join(dir, "x.db");
  await writeFile(path, "");
  return {
    path,
    said,
    log: { error: say, warn: say, info: say },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  };
}

test("a loss that cannot be written down is said all the same, and for as long as the process runs", async () => {
  await using at = await place();
  await mkdir(`${at.path}-lost`);
  expect(recordLoss(at.path, 3, at.log)).toContain("3 pages at the end of the database's log");
  expect(at.said).toEqual([
    "commits that were acknowledged are missing from the database's log",
    `${at.path}-lost, which was to tell of it, could not be written`,
  ]);
});

test.skipIf(process.getuid?.() !== 0)("the server can read a note that root has made", async () => {
  await using at = await place();
  await chown(at.path, 4_711, 4_712);
  expect(recordLoss(at.path, 1, at.log)).toBeUndefined();
  const { uid, gid } = await stat(`${at.path}-lost`);
  expect([uid, gid]).toEqual([4_711, 4_712]);
  expect(storedLossWarning(at.path)).toContain("1 page at the end");
});

test("an index that tells of an earlier log than the one that is there tells of no loss", async () => {
  await using at = await place();
  const left = `${at.path}-left`;
  const keep = (end: string) => copyFile(`${at.path}${end}`, `${left}${end}`);
  const database = new Sqlite(at.path);
  database.pragma("journal_mode = WAL");
  database.exec("create table notes (text text)");
  const add = (count: number): void => {
    for (let added = 0; added < count; added += 1) database.exec("insert into notes values ('x')");
  };
  add(20);
  await keep("-shm");
  await keep("-wal");
  const earlier = await readFile(`${left}-wal`);
  expect(readLogEnd(left)).toMatchObject({ frames: 22, copied: 0 });
  database.pragma("wal_checkpoint(RESTART)");
  add(1);
  await keep("-wal");
  expect(readLogEnd(left)).toBeUndefined();
  // Whose head is damaged tells nothing, and SQLite takes nothing of it.
  const log = await readFile(`${left}-wal`);
  log[17] = 255 - (log[17] ?? 0);
  await writeFile(`${left}-wal`, log);
  expect(readLogEnd(left)).toMatchObject({ frames: 22, copied: 0 });
  // An index of a later log: what that held is gone.
  await keep("-shm");
  await writeFile(`${left}-wal`, earlier);
  expect(readLogEnd(left)).toMatchObject({ frames: 1, copied: 0 });
  database.close();
});
