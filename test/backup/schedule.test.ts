import { expect, test } from "bun:test";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { DRAFT } from "../../src/backup/kept.ts";
import { backupWarning, makeBackupsLater } from "../../src/backup/schedule.ts";
import { backupToFile, backupToStream, sourceOf } from "../../src/backup/write-backup.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { lockMailBytes } from "../../src/db/locks.ts";
import { messageOf } from "../../src/errors.ts";
import { eraseLater } from "../../src/jobs/erase.ts";
import { isPattern, isSchedule, nextTime } from "../../src/lib/cron.ts";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { entriesOf } from "../support/backups.ts";
import { ownMs } from "../support/own-time.ts";
import { keepAll, keepText } from "../support/kept-bytes.ts";

const DAILY = { schedule: "30 3 * * *" };

async function room(backup: ConfigOverrides["backup"]): Promise<TestApp & { base: string }> {
  const base = await mkdtemp(join(tmpdir(), "mailwright-schedule-"));
  const t = await testApp({
    backup: { dir: join(base, "backups"), ...backup },
    database: { url: `sqlite:${join(base, "mailwright.db")}` },
  });
  await t.app.write((tx) => makeBackupsLater(t.app, tx));
  return {
    ...t,
    base,
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      await rm(base, { recursive: true, force: true });
    },
  };
}

const archives = (t: { app: TestApp["app"] }) => readdir(t.app.config.backup.dir).catch(() => []);
const planned = (t: TestApp) =>
  t.app.db.selectFrom("jobs").select(["run_at", "failures"]).where("kind", "=", "make_backup").execute();
const utc = (text: string) => Date.parse(`${text}Z`) / 1_000;

test("a pattern is read in UTC, has five fields and names a time to come", () => {
  expect(nextTime("30 3 * * *", utc("2026-03-29T00:00:00"))).toBe(utc("2026-03-29T03:30:00"));
  expect(nextTime("0 0 29 2 *", utc("2026-01-01T00:00:00"))).toBe(utc("2028-02-29T00:00:00"));
  for (const right of ["@daily", "*/5 * * * MON-FRI", "0 3 L * *"])
    expect([right, isSchedule(right)]).toEqual([right, true]);
  for (const wrong of [
    "",
    "daily",
    "* * * * * *",
    "0 0 31 2 *",
    "61 * * * *",
    "@reboot",
    "2020-01-01T00:00:00",
  ])
    expect([wrong, isSchedule(wrong)]).toEqual([wrong, false]);
});

test("a pattern that never comes is known at once", () => {
  const before = ownMs();
  for (let times = 0; times < 20; times += 1)
    for (const never of [
      "0 0 30 2 *",
      "* * 31 2,4,6,9,11 *",
      "0 0 31W 2 *",
      "0 0 30 2 +1",
      "* * 1-28 * +0-6#5",
      "* * 30,31 2 ?",
    ])
      expect([never, isPattern(never)]).toEqual([never, false]);
  expect(ownMs() - before).toBeLessThan(2_000);
  for (const rare of ["0 0 29 2 *", "0 0 29 2 1#5", "0 0 31 * 0#5", "0 9 L * *", "0 9 * * 5L"])
    expect([rare, isPattern(rare)]).toEqual([rare, true]);
});

test("backups are made at their time, the newest are kept, and nothing else is deleted", async () => {
  await using t = await room({ ...DAILY, keep: 2 });
  await t.drain();
  expect(await archives(t)).toEqual([]);
  await mkdir(t.app.config.backup.dir);
  for (const name of ["mine.zip", "mailwright-today.zip", "before-0001-foundation.zip"])
    await writeFile(join(t.app.config.backup.dir, name), "");
  for (const _ of [1, 2, 3, 4]) {
    t.clock.advance("1d");
    await t.drain();
  }
  expect((await archives(t)).sort()).toEqual([
    "before-0001-foundation.zip",
    "mailwright-20260118T120000Z.zip",
    "mailwright-20260119T120000Z.zip",
    "mailwright-today.zip",
    "mine.zip",
  ]);
  const path = join(t.app.config.backup.dir, "mailwright-20260119T120000Z.zip");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await entriesOf(path)).map(({ name }) => name)).toEqual([
    "mailwright.db",
    "smtp-certificate.json",
    "manifest.json",
  ]);
  expect(await planned(t)).toEqual([{ run_at: utc("2026-01-20T03:30:00"), failures: 0 }]);
  expect(await backupWarning(t.app)).toBeUndefined();
});

test("an older backup that cannot be deleted is said, and costs neither the new one nor those that are kept", async () => {
  await using t = await room({ ...DAILY, keep: 2 });
  const { dir } = t.app.config.backup;
  await mkdir(dir);
  const old = (day: string) => join(dir, `mailwright-202601${day}T033000Z.zip`);
  // Nothing that is no file is deleted.
  await mkdir(old("01"));
  await writeFile(old("02"), "");
  await writeFile(old("03"), "");
  for (const [day, path] of ["01", "02", "03"].map((one) => [one, old(one)] as const))
    await utimes(path, new Date(`2026-01-${day}`), new Date(`2026-01-${day}`));
  t.clock.advance("1d");
  await t.drain();
  const kept = ["01T033000", "03T033000", "16T120000"].map((time) => `mailwright-202601${time}Z.zip`);
  expect((await readdir(dir)).toSorted()).toEqual(kept);
  expect(await planned(t)).toEqual([{ run_at: utc("2026-01-17T03:30:00"), failures: 0 }]);
  expect(await backupWarning(t.app)).toMatch(
    /^Older backups could not be deleted: .*mailwright-20260101T033000Z\.zip/,
  );
  await rm(old("01"), { recursive: true });
  t.clock.advance("1d");
  await t.drain();
  expect(await backupWarning(t.app)).toBeUndefined();
});

test("backups of a clock that was years ahead do not push out those of today", async () => {
  await using t = await room({ ...DAILY, keep: 2 });
  await mkdir(t.app.config.backup.dir);
  const path = (name: string) => join(t.app.config.backup.dir, name);
  for (const [name, year] of [
    ["mailwright-20360101T033000Z.zip", 2036],
    ["mailwright-20360102T033000Z.zip", 2037],
  ] as const) {
    await writeFile(path(name), "");
    await utimes(path(name), new Date(Date.UTC(year)), new Date(Date.UTC(year)));
  }
  for (const _ of [1, 2]) {
    t.clock.advance("1d");
    await t.drain();
  }
  expect((await archives(t)).sort()).toEqual([
    "mailwright-20260116T120000Z.zip",
    "mailwright-20260117T120000Z.zip",
  ]);
});

test.skipIf(process.platform !== "linux")(
  "a stream that cannot be written is named as what is wrong",
  async () => {
    await using t = await room(DAILY);
    const source = sourceOf(t.app.config, t.app.now());
    const made = backupToStream(source, createWriteStream("/dev/full"), new AbortController().signal);
    expect(await made.catch(messageOf)).toMatch(/^The backup was not taken to its end: ENOSPC/);
  },
);

test.each([
  ["at once", 0],
  ["after a piece", 1],
  ["at its end", 1_000],
])("a stream of which nothing is taken %s ends the backup, and frees the lock", async (_when, taken) => {
  await using t = await room(DAILY);
  const { dir } = t.app.config.data;
  let writes = 0;
  const out = new Writable({
    write: (_chunk, _encoding, done) => void (writes++ < taken && done()),
    final: () => undefined,
  });
  const source = sourceOf(t.app.config, t.app.now());
  const made = backupToStream(source, out, new AbortController().signal, 200);
  expect(await made.catch(messageOf)).toMatch(/^The backup was not taken to its end: nobody has taken/);
  using lock = lockMailBytes(dir);
  expect(lock).toBeDefined();
  expect((await readdir(dir)).filter((name) => name.startsWith(DRAFT))).toEqual([]);
});

test("a stream that is taken slowly is written to its end", async () => {
  await using t = await room(DAILY);
  const out = new Writable({ write: (_chunk, _encoding, done) => void setTimeout(done, 20) });
  const source = sourceOf(t.app.config, t.app.now());
  expect(await backupToStream(source, out, new AbortController().signal, 400)).toMatchObject({
    hostname: source.hostname,
  });
});

test("what waits for more than an hour to be erased because of a backup is warned of", async () => {
  await using t = await room(DAILY);
  await t.app.write((tx) => eraseLater(t.app, tx, []));
  const look = async () => (await queueWarnings(t.app))["erasing"];
  {
    using _backup = lockMailBytes(t.app.config.data.dir);
    await t.drain();
    for (let minutes = 0; minutes < 59; minutes += 1) {
      t.clock.advance("1m");
      await t.drain();
    }
    expect(await look()).toBeUndefined();
    t.clock.advance("1m");
    await t.drain();
    expect(await look()).toMatch(/^what was deleted has waited for 60 minutes to be erased/);
  }
  t.clock.advance("1m");
  await t.drain();
  expect(await look()).toBeUndefined();
});

test("a backup that cannot be made is tried again, sooner than its next time, and is warned of until it is made", async () => {
  await using t = await room(DAILY);
  await writeFile(t.app.config.backup.dir, "a file in the place of the folder");
  t.clock.advance("1d");
  for (const [failures, wait] of [
    [1, 300],
    [2, 600],
    [3, 1_200],
  ] as const) {
    await t.drain();
    expect(await planned(t)).toEqual([{ run_at: t.app.now() + wait, failures }]);
    t.clock.advance(`${wait}s`);
  }
  expect(await backupWarning(t.app)).toMatch(
    /^The last backup failed\. The backup cannot be written to .*backup\.dir\)\.$/,
  );
  await rm(t.app.config.backup.dir);
  await t.drain();
  expect(await archives(t)).toHaveLength(1);
  expect(await planned(t)).toEqual([{ run_at: utc("2026-01-17T03:30:00"), failures: 0 }]);
  expect(await backupWarning(t.app)).toBeUndefined();
});

test("a start keeps the plan, makes up for a backup that was missed, and follows a changed schedule", async () => {
  await using t = await room(DAILY);
  const start = (schedule: string) => {
    t.app.config.backup.schedule = schedule;
    return t.app.write((tx) => makeBackupsLater(t.app, tx));
  };
  const at = async () => (await planned(t)).map(({ run_at }) => run_at);
  t.clock.advance("1d");
  await start(DAILY.schedule);
  expect(await at()).toEqual([utc("2026-01-16T03:30:00")]);
  await start("0 0 1 * *");
  expect(await at()).toEqual([utc("2026-02-01T00:00:00")]);
  await t.app.db
    .updateTable("jobs")
    .set({ run_at: utc("2036-01-01T00:00:00") })
    .where("kind", "=", "make_backup")
    .execute();
  await start("0 0 1 * *");
  expect(await at()).toEqual([utc("2026-02-01T00:00:00")]);
  await start("");
  expect(await at()).toEqual([]);
});

test("a start has a backup that has failed made at its time, and forgets nothing of that", async () => {
  await using t = await room(DAILY);
  const failed = { failures: 12, last_error: "no disk", run_at: t.app.now() + 20 * 86_400 };
  await t.app.db.updateTable("jobs").set(failed).where("kind", "=", "make_backup").execute();
  await t.app.write((tx) => makeBackupsLater(t.app, tx));
  expect(await planned(t)).toEqual([{ run_at: utc("2026-01-16T03:30:00"), failures: 12 }]);
  expect(await backupWarning(t.app)).toBe("The last backup failed. no disk");
});

test("bytes that are to be erased wait for the end of a backup", async () => {
  await using t = await room({});
  const { app } = t;
  const range = await keepText(app.segments, "deleted mail");
  await app.write((tx) => eraseLater(app, tx, [range]));
  {
    using _backup = lockMailBytes(app.config.data.dir);
    await t.drain();
    expect(String(await app.segments.read(range))).toBe("deleted mail");
    t.clock.advance("1m");
    await t.drain();
    expect(String(await app.segments.read(range))).toBe("deleted mail");
  }
  t.clock.advance("1m");
  await t.drain();
  expect(await app.segments.read(range)).toEqual(Buffer.alloc(range.size));
});

test("an archive holds the bytes that the database names, and zeros for what was deleted or never committed", async () => {
  await using t = await room({});
  const { app } = t;
  const [kept, dropped] = [Buffer.from("kept ".repeat(1_000)), Buffer.from("dropped ".repeat(300_000))];
  const all = [dropped, kept, dropped, kept, kept, dropped];
  const ranges = await keepAll(app.segments, all);
  await app.write(async (tx) => {
    for (const [index, { segment, offset: segment_offset, size }] of ranges.entries()) {
      const row = {
        id: Bun.randomUUIDv7(),
        bytes: null,
        segment,
        segment_offset,
        size,
        created: 0,
        purged_at: null,
      };
      if (all[index] === kept) await tx.insertInto("raw_mails").values(row).execute();
    }
  });
  const path = join(t.base, "x.zip");
  const { manifest } = await backupToFile(
    sourceOf(app.config, app.now()),
    path,
    new AbortController().signal,
  );
  expect(manifest.missing_bytes).toBe(0);
  const segment = (await entriesOf(path)).find(({ name }) => name === "mail/00000001.seg")?.content as Buffer;
  expect(
    segment.equals(
      Buffer.concat(ranges.map(({ size }, index) => (all[index] === kept ? kept : Buffer.alloc(size)))),
    ),
  ).toBe(true);
  await rm(join(app.config.data.dir, "mail", "00000001.seg"));
  const again = await backupToFile(sourceOf(app.config, app.now()), path, new AbortController().signal);
  expect(again.manifest.missing_bytes).toBe(3 * kept.byteLength);
});
