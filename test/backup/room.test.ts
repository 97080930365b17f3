import { describe, expect, test } from "bun:test";
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { backupToFile, backupToStream, sourceOf } from "../../src/backup/write-backup.ts";
import { freeOn } from "../../src/db/reserve.ts";
import { memoryDisk, whyNoMounts } from "../faults/disks.ts";
import { backupLab, NOW } from "../support/backups.ts";
import { Writable } from "node:stream";
import { MB } from "../../src/lib/sizes.ts";

const LEFT_MB = 128;
const reason = await whyNoMounts("tmpfs");
const never = new AbortController().signal;

/** A data folder on a disk of its own, on which so many megabytes are free. */
async function onDiskWith(free_mb: number) {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await backupLab());
  const disk = stack.use(await memoryDisk(256));
  const dir = join(disk.path, "data");
  await cp(lab.source.data.dir, dir, { recursive: true });
  await mkdir(join(dir, "backups"));
  addNoise(join(dir, "mailwright.db"));
  const { bytes } = await freeOn(dir);
  await writeFile(join(disk.path, "ballast"), randomBytes(bytes - free_mb * MB));
  const source = { ...sourceOf(lab.source, NOW), dir, database: join(dir, "mailwright.db") };
  const held = stack.move();
  return { dir, source, lab, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

/** Adds what no archive makes smaller. */
function addNoise(path: string): void {
  const database = new Sqlite(path);
  database.exec(`create table noise (bytes blob); insert into noise values (randomblob(${8 * MB}))`);
  database.close();
}

describe.skipIf(reason !== undefined)("a backup on the disk of the data", () => {
  test.each([
    ["before the snapshot", LEFT_MB],
    ["in the middle of the archive", LEFT_MB + 12],
  ])("leaves the server the room it needs to take mail: %s", async (_when, free_mb) => {
    await using at = await onDiskWith(free_mb);
    const kept = join(at.dir, "backups", "older.zip");
    await writeFile(kept, "older");
    const before = await freeOn(at.dir);
    const path = join(at.dir, "backups", "new.zip");
    const made = backupToFile(at.source, path, never);
    expect(made).rejects.toThrow("it would leave less than 128 MB on a disk with data of the server");
    await made.catch(() => undefined);
    expect(await readdir(join(at.dir, "backups"))).toEqual(["older.zip"]);
    expect((await freeOn(at.dir)).bytes).toBe(before.bytes);
  });

  test("that is written elsewhere needs room for the copy of the database alone", async () => {
    const out = () => new Writable({ write: (_chunk, _set, done) => done() });
    await using at = await onDiskWith(LEFT_MB + 12);
    expect((await backupToStream(at.source, out(), never)).counts.accounts).toBe(1);
    await using full = await onDiskWith(LEFT_MB);
    expect(backupToStream(full.source, out(), never)).rejects.toThrow("it would leave less than 128 MB");
  });

  test("is made where there is room, and on any other disk to its brim", async () => {
    await using at = await onDiskWith(LEFT_MB + 24);
    await backupToFile(at.source, join(at.dir, "backups", "new.zip"), never);
    await using full = await onDiskWith(LEFT_MB - 16);
    await using other = await memoryDisk(24);
    await backupToFile(full.source, join(other.path, "new.zip"), never);
    expect(await readdir(other.path)).toEqual(["new.zip"]);
  });
});
