import { hash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdtemp, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { databasePath } from "../db/database-path.ts";
import type { Config } from "../config/config.ts";
import { lockMailBytes } from "../db/locks.ts";
import { opensKeyCheck } from "../db/master-key.ts";
import { openSnapshot, type Snapshot, takeSnapshot } from "../db/snapshot.ts";
import { AppError } from "../errors.ts";
import { syncFolder } from "../lib/durable-file.ts";
import { VERSION } from "../lib/version.ts";
import { writeArchive } from "./archive.ts";
import { backupFault, streamFault } from "./faults.ts";
import { DRAFT } from "./kept.ts";
import type { Manifest } from "./manifest.ts";
import { DAY_MS } from "../lib/durations.ts";

/** Somebody may be overwriting deleted mail, which is soon done. */
const LOCK_WAIT_MS = 20_000;
/** A draft of another data folder is nobody's any more at that age. */
const STALE_MS = DAY_MS;

/** What a backup is made of, in a form that can be told to another thread. */
export interface BackupSource {
  /** The data folder. */
  dir: string;
  /** Path of the database. */
  database: string;
  hostname: string;
  master_key: Manifest["master_key"];
  /** Whether the mails and files beside the database go in as well. */
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

/** Writes an archive to `path`, all of it or nothing, in place of an older file there. Throws AppError when the disk is at fault. */
export async function backupToFile(source: BackupSource, path: string, signal: AbortSignal): Promise<Backup> {
  const folder = dirname(path);
  try {
    await using draft = await draftFolder(folder, source.dir);
    const archive = join(draft.path, "archive.zip");
    const manifest = await pack(source, {
      draft: draft.path,
      signal,
      out: () => createWriteStream(archive, { mode: 0o600, flags: "wx" }),
    });
    const bytes = await sync(archive);
    await rename(archive, path);
    await syncFolder(path);
    return { manifest, bytes };
  } catch (error) {
    throw backupFault(signal.aborted ? signal.reason : error, folder);
  }
}

/** Writes an archive to a stream, such as the standard output. */
export async function backupToStream(
  source: BackupSource,
  out: Writable,
  signal: AbortSignal,
): Promise<Manifest> {
  try {
    await using draft = await draftFolder(source.dir, source.dir);
    return await pack(source, { draft: draft.path, signal, out: () => out });
  } catch (error) {
    if (signal.aborted) throw signal.reason as Error;
    throw streamFault(error, out) ?? backupFault(error, source.dir);
  }
}

interface Target {
  /** A private folder on the same disk. */
  draft: string;
  out: () => Writable;
  signal: AbortSignal;
}

async function pack(source: BackupSource, { draft, out, signal }: Target): Promise<Manifest> {
  const path = join(draft, "snapshot.db");
  takeSnapshot(source.database, path);
  using snapshot: Snapshot = openSnapshot(path);
  await refuseWithoutKey(source, snapshot);
  const { hostname, mail, master_key, created } = source;
  const about = { version: VERSION, created, hostname, mail, master_key };
  return await writeArchive({ dir: source.dir, path, snapshot, about }, out(), signal);
}

/** A running server keeps the key in memory, and would go on making backups that nobody can open. */
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

/** From before the snapshot until the end: what it names must be there when it is copied. */
function lockBackups(dir: string): Disposable {
  const lock = lockMailBytes(dir, LOCK_WAIT_MS);
  if (lock) return lock;
  throw new AppError("unavailable", "Another backup of this data folder is being made.", {
    fix: "Wait for it to end.",
  });
}

/** Holds mail in the open for a while, so nobody else may look into it; and the lock of the data folder. */
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

/** What a backup left behind that was killed: at once if it was of this data folder, for the lock says that none is being made. */
async function removeAbandoned(folder: string, start: string): Promise<void> {
  for (const name of (await readdir(folder)).filter((one) => one.startsWith(DRAFT))) {
    const path = join(folder, name);
    const { mtimeMs } = await stat(path);
    if (name.startsWith(start) || mtimeMs < Date.now() - STALE_MS)
      await rm(path, { recursive: true, force: true });
  }
}

/** Returns the size. */
async function sync(path: string): Promise<number> {
  await using file = await open(path, "r+");
  await file.sync();
  return (await file.stat()).size;
}
