import { hash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdtemp, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { databasePath } from "../db/database-path.ts";
import type { Config } from "../config/config.ts";
import { lockMailBytes } from "../db/locks.ts";
import { opensKeyCheck } from "../db/master-key.ts";
import { dataFolders, LEFT_BYTES, leavesRoom } from "../db/reserve.ts";
import { mendSnapshot, openSnapshot, type Snapshot, takeSnapshot } from "../db/snapshot.ts";
import { AppError } from "../errors.ts";
import { syncFolder } from "../lib/durable-file.ts";
import { VERSION } from "../lib/version.ts";
import { writeArchive } from "./archive.ts";
import { backupFault, NO_ROOM_FIX, streamFault } from "./faults.ts";
import { DRAFT } from "./kept.ts";
import type { Manifest } from "./manifest.ts";
import { patientStream } from "./patient-stream.ts";
import { DAY_MS } from "../lib/durations.ts";
import { MB } from "../lib/sizes.ts";

/** How long to wait for a lock: an eraser of deleted mail finishes soon. */
const LOCK_WAIT_MS = 20_000;
/** How long a stream may stand still. */
const PATIENCE_MS = 5 * 60_000;
/** Age at which a draft of another data folder is considered abandoned. */
const STALE_MS = DAY_MS;

/** What to back up, in a form that can be posted to a thread. */
export interface BackupSource {
  /** The data folder. */
  dir: string;
  /** Path of the database. */
  database: string;
  hostname: string;
  master_key: Manifest["master_key"];
  /** Whether to include the mail files beside the database. */
  mail: boolean;
  /** Unix seconds. */
  created: number;
}

export interface Backup {
  manifest: Manifest;
  /** Size of the archive. */
  bytes: number;
}

export function sourceOf(config: Config, created: number): BackupSource {
  const { data, database, security, smtp } = config;
  return {
    dir: data.dir,
    database: databasePath(database.url),
    hostname: smtp.hostname,
    master_key: security.master_key === "" ? "included" : "configured",
    mail: true,
    created,
  };
}

/**
 * Writes an archive to `path`, completely or not at all, replacing an older file. Throws AppError when the disk is at
 * fault.
 */
export async function backupToFile(source: BackupSource, path: string, signal: AbortSignal): Promise<Backup> {
  const folder = dirname(path);
  try {
    await using draft = await draftFolder(folder, source.dir);
    const archive = join(draft.path, "archive.zip");
    const manifest = await pack(source, {
      draft: draft.path,
      signal,
      out: () => createWriteStream(archive, { mode: 0o600, flags: "wx" }),
      refuseMore: await roomKeeper(source, folder),
    });
    const bytes = await sync(archive);
    await rename(archive, path);
    await syncFolder(path);
    return { manifest, bytes };
  } catch (error) {
    throw backupFault(signal.aborted ? signal.reason : error, folder);
  }
}

/**
 * Writes an archive to a stream, such as the standard output. Ends with an error when whoever reads takes nothing for
 * `patience_ms`: the lock keeps deleted mail from being erased, and other backups from being made.
 */
export async function backupToStream(
  source: BackupSource,
  stdout: Writable,
  signal: AbortSignal,
  patience_ms = PATIENCE_MS,
): Promise<Manifest> {
  const out = patientStream(stdout, patience_ms);
  try {
    await using draft = await draftFolder(source.dir, source.dir);
    const refuseMore = await roomKeeper(source, source.dir);
    return await pack(source, { draft: draft.path, signal, out: () => out, refuseMore });
  } catch (error) {
    if (signal.aborted) throw signal.reason as Error;
    throw streamFault(error, out) ?? backupFault(error, source.dir);
  }
}

interface Target {
  /** A temporary folder on the same disk, mode 0700. */
  draft: string;
  out: () => Writable;
  signal: AbortSignal;
  refuseMore: RefuseMore;
}

async function pack(source: BackupSource, { draft, out, signal, refuseMore }: Target): Promise<Manifest> {
  const path = join(draft, "snapshot.db");
  const refuseCopy = async () => refuseMore((await stat(source.database)).size);
  await refuseCopy();
  await takeSnapshot(source.database, path, refuseCopy);
  mendSnapshot(path);
  using snapshot: Snapshot = openSnapshot(path);
  await refuseWithoutKey(source, snapshot);
  const { hostname, mail, master_key, created } = source;
  const about = { version: VERSION, created, hostname, mail, master_key };
  return await writeArchive({ dir: source.dir, path, snapshot, about, refuseMore }, out(), signal);
}

/** Throws where another `bytes` in the folder would leave the server less than it needs to take mail. */
type RefuseMore = (bytes?: number) => Promise<void>;

async function roomKeeper({ dir, database }: BackupSource, folder: string): Promise<RefuseMore> {
  const disks = await Promise.all(dataFolders(dir, database).map(diskOf));
  if (!disks.includes(await diskOf(folder))) return () => Promise.resolve();
  return async (bytes = 0) => {
    if (await leavesRoom(folder, bytes)) return;
    throw new AppError(
      "unavailable",
      `There is no room for a backup in ${folder}: it would leave less than ${LEFT_BYTES / MB} MB on a disk with data of the server, which needs them to take mail.`,
      { fix: NO_ROOM_FIX },
    );
  };
}

/** The number of the disk of a folder; undefined where there is no such folder. */
async function diskOf(folder: string): Promise<number | undefined> {
  return (await stat(folder).catch(() => undefined))?.dev;
}

/**
 * Throws without the right key file: a running server has the key in memory, and would make backups that nobody can
 * open.
 */
async function refuseWithoutKey({ dir, master_key }: BackupSource, { key_check }: Snapshot): Promise<void> {
  if (master_key !== "included" || key_check === null) return;
  const opens = await opensKeyCheck(key_check, { configured: "", dir }).catch((error: unknown) => {
    if (error instanceof AppError) return false;
    throw error;
  });
  if (opens) return;
  throw new AppError(
    "unavailable",
    "The file master.key in the data folder is gone, or is not the key of this database: nobody could open this backup, so it was not made.",
    {
      fix: "Put the key back from an older backup before the server is stopped. Older backups are left as they are.",
    },
  );
}

/** Takes the lock that keeps mail files unchanged from before the snapshot until the end. */
function lockBackups(dir: string): Disposable {
  const lock = lockMailBytes(dir, LOCK_WAIT_MS);
  if (lock) return lock;
  throw new AppError("unavailable", "Another backup of this data folder is being made.", {
    fix: "Wait for it to end.",
  });
}

/**
 * Creates the folder for a draft, which only this user can read, because it holds mail unencrypted for a while. Holds
 * the lock of backups until it is disposed of.
 */
async function draftFolder(folder: string, data_dir: string): Promise<{ path: string } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  stack.use(lockBackups(data_dir));
  const start = `${DRAFT}${hash("sha256", await realpath(data_dir)).slice(0, 8)}-`;
  await removeAbandoned(folder, start);
  const path = await mkdtemp(join(folder, start));
  stack.defer(() => rm(path, { recursive: true, force: true }));
  const held = stack.move();
  return { path, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

/** Deletes drafts of killed backups: at once if of this data folder, whose lock shows that none is being made. */
async function removeAbandoned(folder: string, start: string): Promise<void> {
  for (const name of (await readdir(folder)).filter((one) => one.startsWith(DRAFT))) {
    const path = join(folder, name);
    const { mtimeMs } = await stat(path);
    if (name.startsWith(start) || mtimeMs < Date.now() - STALE_MS)
      await rm(path, { recursive: true, force: true });
  }
}

/** Syncs a file. Returns its size in bytes. */
async function sync(path: string): Promise<number> {
  await using file = await open(path, "r+");
  await file.sync();
  return (await file.stat()).size;
}
