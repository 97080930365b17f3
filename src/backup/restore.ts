import { existsSync, realpathSync } from "node:fs";
import { mkdir, readdir, stat, statfs, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { databasePath } from "../db/database-path.ts";
import type { Config } from "../config/config.ts";
import { openDatabase } from "../db/database.ts";
import { lockMailBytes, lockStores } from "../db/locks.ts";
import { migrateToLatest } from "../db/migrate.ts";
import { forgetSignIns, openSnapshot, refuseNewer, refuseUnfit } from "../db/snapshot.ts";
import { AppError } from "../errors.ts";
import { syncFolder } from "../lib/durable-file.ts";
import { HELD_BY_DEFAULT, holdKinds } from "../jobs/holds.ts";
import { opensKeyCheck } from "../db/master-key.ts";
import { restoreFault } from "./faults.ts";
import { DATABASE, isSegment, type Manifest, notABackup, segmentName } from "./manifest.ts";
import { type Archive, openArchive } from "./read-archive.ts";
import { keptBeside, POINTS } from "./restore-points.ts";
import { exchange, finishExchange, workFolder } from "./swap.ts";
import { MB } from "../lib/sizes.ts";

/** What a restore replaces besides the database and the mails. */
const KEYS = ["master.key", "smtp-certificate.json", "tls", "dkim"];
/** Files that SQLite keeps beside a database, and the note of lost commits. */
const COMPANIONS = ["-wal", "-shm", "-journal", "-lost"];
/** Bytes that stay free on the disk. */
const SPARE_BYTES = 64 * MB;

export interface Restored {
  manifest: Manifest;
  /** The folder with the former content; null when there was none. */
  restore_point: string | null;
  /** Faults of single rows of the backup, which its server had as well. */
  oddities: string[];
}

interface RestoreOptions {
  /** Unix seconds. */
  now: number;
  /** Whether to hold runs, mails and webhooks until the operator releases them. */
  hold: boolean;
  /** Called once the archive was verified, before anything is changed. */
  confirm: (manifest: Manifest, replaces: boolean) => Promise<boolean>;
}

/**
 * Replaces the content of the data folder by a backup: completely or, if it fails or is interrupted, not at all.
 * Returns null when it was not confirmed.
 */
export async function restoreBackup(
  config: Config,
  file: string,
  { now, hold, confirm }: RestoreOptions,
): Promise<Restored | null> {
  const { dir } = config.data;
  using lock = lockStores(config);
  if (!lock)
    throw new AppError("unavailable", `A server is running on the data folder ${dir}.`, {
      fix: "Stop it first.",
    });
  using bytes = lockMailBytes(dir);
  if (!bytes)
    throw new AppError("unavailable", `A backup of the data folder ${dir} is being made.`, {
      fix: "Wait for it to end.",
    });
  await finishExchange(dir);
  using archive = await openArchive(file);
  const { manifest } = archive;
  refuseNewer(manifest.migrations);
  const place = placeOf(config, now);
  await refuseOtherDisks(place);
  if (!(await confirm(manifest, existsSync(place.database)))) return null;
  try {
    const oddities = await unpack(config, place, archive);
    if (hold) await holdQueue(join(place.fresh, DATABASE), now);
    const mail = await beginSegment(place, manifest);
    const restore_point = (await exchangeAll(place, mail)) ? place.point : null;
    return { manifest, restore_point, oddities };
  } catch (error) {
    throw restoreFault(error, dir);
  } finally {
    await finishExchange(dir);
  }
}

interface Place {
  dir: string;
  /** Path of the database, which may be elsewhere. */
  database: string;
  /** Path where the new content is assembled. */
  fresh: string;
  point: string;
}

function placeOf({ data, database }: Config, now: number): Place {
  const dir = resolve(data.dir);
  const stamp = new Date(now * 1_000).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return {
    dir,
    database: within(dir, databasePath(database.url)),
    fresh: join(workFolder(dir), "fresh"),
    point: unused(join(dir, POINTS, stamp)),
  };
}

/** Returns `path` written through `dir`, which may be a link, if the file lies directly in that folder. */
function within(dir: string, path: string): string {
  return dirname(path) === realpathSync(dir) ? join(dir, basename(path)) : path;
}

/** Returns `path`, with a number appended if it exists. */
function unused(path: string): string {
  let name = path;
  for (let number = 2; existsSync(name); number++) name = `${path}-${number}`;
  return name;
}

/** Throws if parts are on different disks, which cannot be exchanged atomically. */
async function refuseOtherDisks({ dir, database }: Place): Promise<void> {
  await mkdir(dirname(database), { recursive: true, mode: 0o700 });
  const { dev } = await stat(dir);
  const folders = ["mail", "tls", "dkim", POINTS].map((name) => join(dir, name));
  for (const path of [dirname(database), ...folders]) {
    if (!existsSync(path) || (await stat(path)).dev === dev) continue;
    throw new AppError("unavailable", `${path} is on another disk than the data folder ${dir}.`, {
      fix: "Restore into an empty data folder on one disk (data.dir), and move its parts from there.",
    });
  }
}

interface Fresh {
  /** Path of the unpacked database. */
  database: string;
  manifest: Manifest;
}

/** Unpacks and verifies everything before anything is changed. Returns faults of single rows. */
async function unpack(config: Config, { dir, fresh }: Place, archive: Archive): Promise<string[]> {
  const { manifest } = archive;
  await refuseTooLarge(dir, manifest);
  await mkdir(fresh, { recursive: true, mode: 0o700 });
  await archive.extract(fresh);
  const database = join(fresh, DATABASE);
  const oddities = refuseUnfit(database);
  await refuseMissingMail({ dir, database, manifest });
  await refuseWrongKey(config, { fresh, database, manifest });
  forgetSignIns(database);
  return oddities;
}

/**
 * Holds the kinds of work that others notice and that may have been done since the backup. The database is migrated
 * first, because an old backup may lack the table of held kinds.
 */
async function holdQueue(path: string, now: number): Promise<void> {
  await using database = openDatabase(`sqlite:${path}`);
  await migrateToLatest(database.db);
  await database.write((tx) => holdKinds(tx, HELD_BY_DEFAULT, now));
}

async function refuseTooLarge(dir: string, { entries }: Manifest): Promise<void> {
  const needed = entries.reduce((sum, { size }) => sum + size, 0) + SPARE_BYTES;
  const { bavail, bsize } = await statfs(dir);
  if (bavail * bsize >= needed) return;
  const mb = (bytes: number): number => Math.ceil(bytes / MB);
  throw new AppError(
    "unavailable",
    `There is no room to restore into ${dir}: it takes ${mb(needed)} MB, and ${mb(bavail * bsize)} MB are free.`,
    { fix: "Make room, such as by moving old restore points away. Nothing was changed." },
  );
}

/**
 * Throws if mail files are missing. A backup without mails, as from before an upgrade, needs those in the folder. A
 * missing file is a fault, unless it is older than the newest: the server deletes a segment once all its mails were
 * deleted, and never the newest.
 */
async function refuseMissingMail({ dir, database, manifest }: Fresh & { dir: string }): Promise<void> {
  using snapshot = openSnapshot(database);
  const sizes = new Map(manifest.entries.map(({ name, size }) => [name, size]));
  const newest = await newestSegment(dir);
  for (const { segment, end } of snapshot.segments) {
    const name = segmentName(segment);
    if (manifest.mail && (sizes.get(name) ?? 0) < end) throw notABackup(`mails in ${name} are missing`);
    const there = await stat(join(dir, name)).catch(() => undefined);
    if (manifest.mail || (there ? there.size >= end : segment < newest)) continue;
    throw new AppError("unavailable", `This backup was made before an upgrade and is without ${name}.`, {
      fix: "Restore it into the data folder that it was made of, or use a full backup. Nothing was changed.",
    });
  }
}

/**
 * Creates an empty segment behind all that exist or are in the archive, so that none of these is appended to again: no
 * place in them ever gets a second meaning, whichever database is used later. Returns the folder to exchange.
 */
async function beginSegment({ dir, fresh }: Place, { mail, entries }: Manifest): Promise<string> {
  const newest = Math.max(await newestSegment(dir), newestOf(entries.map(({ name }) => name)));
  const name = segmentName(newest + 1);
  const path = join(fresh, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, "", { mode: 0o600, flag: "wx" });
  await syncFolder(path);
  return mail ? "mail" : name;
}

async function newestSegment(dir: string): Promise<number> {
  const names = await readdir(join(dir, "mail")).catch(() => []);
  return newestOf(names.map((name) => `mail/${name}`));
}

/** Returns the highest number; 0 where there is none. */
function newestOf(names: string[]): number {
  return names.filter(isSegment).reduce((most, name) => Math.max(most, Number(/\d+/.exec(name)?.[0])), 0);
}

async function refuseWrongKey(
  { security }: Config,
  { fresh, database, manifest }: Fresh & { fresh: string },
): Promise<void> {
  using snapshot = openSnapshot(database);
  const { master_key } = security;
  if (master_key === "" && !manifest.entries.some(({ name }) => name === "master.key"))
    throw new AppError(
      "unavailable",
      "The master key is not in this backup: its server had it in security.master_key.",
      {
        fix: "Set security.master_key to the same key, and restore again. Nothing was changed.",
      },
    );
  if (
    snapshot.key_check === null ||
    (await opensKeyCheck(snapshot.key_check, { configured: master_key, dir: fresh }))
  )
    return;
  throw new AppError(
    "unavailable",
    master_key === ""
      ? "The master key in this backup is not the one its database was made with."
      : "security.master_key is not the key that this backup was made with.",
    {
      fix:
        master_key === ""
          ? "Use an older backup. Nothing was changed."
          : "Set it to the key used back then; if the backup has a key of its own, remove the setting. Nothing was changed.",
    },
  );
}

/** Exchanges everything. Returns whether there was anything before. */
function exchangeAll({ dir, database, fresh, point }: Place, mail: string): Promise<boolean> {
  const keep = (path: string): string =>
    dirname(database) === dir ? join(point, basename(path)) : keptBeside(path, point);
  const companions = COMPANIONS.map((end) => `${database}${end}`);
  const others = [...KEYS, mail].map((name) => ({
    current: join(dir, name),
    fresh: join(fresh, name),
    kept: join(point, name),
  }));
  const files = [
    { current: database, fresh: join(fresh, DATABASE), kept: keep(database) },
    ...companions.map((path) => ({ current: path, fresh: null, kept: keep(path) })),
  ];
  return exchange(dir, [...files, ...others], companions);
}
