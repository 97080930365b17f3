import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import { patientFiles } from "../lib/patient-files.ts";
import { backupFault } from "./faults.ts";

/** How long a folder, which may be on a share that is away, is waited for. */
const ANSWER_MS = 10_000;
const folder = patientFiles(
  ANSWER_MS,
  () =>
    new AppError("unavailable", "The folder of the backups does not answer.", {
      fix: "See that the disk or share that it is on is there.",
    }),
);

/** Prefix of the folders in which an archive is written until it is complete. */
export const DRAFT = ".mailwright-draft-";
/** Names of archives that the server makes automatically; no other file is ever deleted. */
export const SCHEDULED = /^mailwright-\d{8}T\d{6}Z\.zip$/;
export const BEFORE_UPGRADE = /^before-\d{4}-[a-z0-9-]+\.zip$/;

export interface KeptBackup {
  name: string;
  bytes: number;
  /** When it was written, in unix seconds. */
  created: number;
  /** Whether it was made before an upgrade, without the mails. */
  before_upgrade: boolean;
}

/** Returns the bytes written so far of a backup in progress; null when there is none. */
export function bytesWritten(dir: string): Promise<number | null> {
  return folder.run(() => sizeOfDrafts(dir));
}

async function sizeOfDrafts(dir: string): Promise<number | null> {
  const names = await readdir(dir).catch(() => []);
  const drafts = names.filter((name) => name.startsWith(DRAFT)).map((name) => join(dir, name, "archive.zip"));
  const sizes = await Promise.all(
    drafts.map((path) =>
      stat(path)
        .then(({ size }) => size)
        .catch(() => 0),
    ),
  );
  return sizes.length === 0 ? null : Math.max(...sizes);
}

/** Returns the archives in a folder, the newest first; empty without a folder. */
export function listBackups(dir: string): Promise<KeptBackup[]> {
  return folder.run(() => backupsIn(dir));
}

async function backupsIn(dir: string): Promise<KeptBackup[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new AppError("unavailable", `The backups in ${dir} cannot be looked at: ${messageOf(error)}.`, {
      fix: "Let the server's user read that folder, or name another one with backup.dir.",
    });
  });
  const found = await Promise.all(
    names
      .filter((name) => name.endsWith(".zip"))
      .map(async (name): Promise<KeptBackup[]> => {
        // The file may have been deleted meanwhile, as by `keepNewest`.
        const about = await stat(join(dir, name)).catch(() => undefined);
        if (!about?.isFile()) return [];
        const created = Math.floor(about.mtimeMs / 1_000);
        return [{ name, bytes: about.size, created, before_upgrade: BEFORE_UPGRADE.test(name) }];
      }),
  );
  return found.flat().sort((a, b) => b.created - a.created || (a.name < b.name ? 1 : -1));
}

/**
 * Creates the folder of backups, but not its parents: if a disk is not mounted, its backups must not fill another one.
 */
export async function ensureFolder(dir: string): Promise<void> {
  await folder.run(() =>
    mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw backupFault(error, dir);
    }),
  );
}

/**
 * Deletes all but the newest `keep` files whose names match `form`. `latest` was just made: a file that seems newer was
 * made earlier, by a wrong clock. Returns the paths of those that could not be deleted, which count as deleted here, with why.
 */
export async function keepNewest(
  latest: string,
  form: RegExp,
  keep: number,
): Promise<{ path: string; problem: string }[]> {
  const dir = dirname(latest);
  const { mtimeMs: now } = await stat(latest);
  const names = (await readdir(dir)).filter((name) => form.test(name) && name !== basename(latest));
  const found = names.map(async (name) => ({ name, made: (await stat(join(dir, name))).mtimeMs }));
  const isOdd = ({ made }: { made: number }): number => Number(made > now);
  const newest = (await Promise.all(found)).sort((a, b) => isOdd(a) - isOdd(b) || b.made - a.made);
  const left: { path: string; problem: string }[] = [];
  for (const { name } of newest.slice(keep - 1)) {
    const path = join(dir, name);
    await rm(path, { force: true }).catch((error: unknown) => left.push({ path, problem: messageOf(error) }));
  }
  return left;
}
