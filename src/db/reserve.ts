import { open, rm, stat, statfs } from "node:fs/promises";
import { noAnswer } from "../lib/own-faults.ts";
import { type PatientFiles, patientFiles } from "../lib/patient-files.ts";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import { databasePath } from "./database-path.ts";
import { StorageError } from "./storage-faults.ts";
import type { WatchLog } from "./watch.ts";
import { MB } from "../lib/sizes.ts";

/** With less free space, a mail of the largest size would not fit. */
export const MIN_FREE_BYTES = 64 * MB;
/**
 * What is left free on a disk with data by all that the server writes of its own accord (backups, the index of words), in bytes:
 * with less than half of that nothing is taken in.
 */
export const LEFT_BYTES = 2 * MIN_FREE_BYTES;
/** With fewer free inodes, creating a file cannot be relied on: a log, a segment, a backup. */
export const MIN_FREE_FILES = 100;
/** Size of the reserve file, which is removed when the disk is full: SQLite needs free space even for deleting. */
const RESERVE_BYTES = 16 * MB;
const GIVE_UP_BELOW_BYTES = 4 * MB;
const LOOK_MS = 500;

interface Reserve extends AsyncDisposable {
  /** Throws while the reserve is in use: the space left is for finishing what was begun, and for deleting. */
  refuseIntake: () => void;
}

/**
 * Keeps a reserve on the disk of the data folder, and one beside the database where that lies on another disk: each is
 * removed when its disk is full, so that deletions and the work in progress have space.
 */
export async function keepReserves(
  { data, database }: Pick<Config, "data" | "database">,
  log: WatchLog,
): Promise<Reserve> {
  await using stack = new AsyncDisposableStack();
  const file = databasePath(database.url);
  const paths = [join(data.dir, "reserve")];
  if (file !== ":memory:" && (await stat(dirname(file))).dev !== (await stat(data.dir)).dev)
    paths.push(`${file}-reserve`);
  const reserves: Reserve[] = [];
  for (const path of paths) reserves.push(stack.use(await keepReserve(path, log)));
  const kept = stack.move();
  return {
    refuseIntake() {
      for (const { refuseIntake } of reserves) refuseIntake();
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Keeps one reserve, the file at `path`. */
export async function keepReserve(path: string, log: WatchLog): Promise<Reserve> {
  const dir = dirname(path);
  let held = (await stat(path).catch(() => undefined))?.size === RESERVE_BYTES;
  if (!held) await rm(path, { force: true });
  let free = (await freeOn(dir)).bytes;
  let looking: Promise<void> | undefined;
  let reported: string | null = null;

  const look = async (): Promise<void> => {
    free = (await freeOn(dir)).bytes;
    if (held && free < GIVE_UP_BELOW_BYTES) {
      await rm(path, { force: true });
      held = false;
      log.warn(
        { path },
        "the disk is full: its reserve was given up, so that things can be deleted and ended",
      );
    } else if (!held && free >= MIN_FREE_BYTES + RESERVE_BYTES) {
      await fill(path);
      held = true;
    }
  };
  const report = (error: unknown): void => {
    const problem = messageOf(error);
    if (problem !== reported) log.warn({ path, problem }, "no reserve can be kept on the disk");
    reported = problem;
  };
  const timer = setInterval(() => {
    looking ??= look()
      .catch(report)
      .finally(() => (looking = undefined));
  }, LOOK_MS);
  timer.unref();
  return {
    refuseIntake() {
      if (!held && free < MIN_FREE_BYTES)
        throw new StorageError("SQLITE_FULL", `only ${Math.floor(free / MB)} MB are free in ${dir}`);
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking;
    },
  };
}

/** How long a disk is waited for, which may be a share that is away. */
const ANSWER_MS = 3_000;
/** By folder, so that one that hangs holds one of the few threads that use files, and no others behind it. */
const looks = new Map<string, PatientFiles>();

/**
 * Returns the free bytes on the disk of a folder, and how many files can still be created; null where its file system
 * has no such limit. Throws MailFilesError where the disk does not answer.
 */
export async function freeOn(dir: string): Promise<{ bytes: number; files: number | null }> {
  const { bavail, bsize, files, ffree } = await lookAt(dir, () => statfs(dir));
  return { bytes: bavail * bsize, files: files === 0 ? null : ffree };
}

function lookAt<T>(dir: string, look: () => Promise<T>): Promise<T> {
  const patient = looks.get(dir) ?? patientFiles(ANSWER_MS, () => noAnswer(dir));
  looks.set(dir, patient);
  return patient.run(look);
}

/** Returns whether the disk of a folder has room for so many bytes that nobody waits for. */
export async function leavesRoom(dir: string, bytes = 0): Promise<boolean> {
  return (await freeOn(dir)).bytes - bytes >= LEFT_BYTES;
}

/** Returns the folders that hold data, which may lie on several disks; `database` is the path of the database. */
export function dataFolders(dir: string, database: string): string[] {
  return [dir, join(dir, "mail"), ...(database === ":memory:" ? [] : [dirname(database)])];
}

/**
 * Returns one data folder for each disk that holds data: the mails or the database may lie behind a symbolic link. Throws
 * MailFilesError where a disk does not answer.
 */
export async function dataDisks({ data, database }: Pick<Config, "data" | "database">): Promise<string[]> {
  const dirs = dataFolders(data.dir, databasePath(database.url));
  // A missing folder has no disk, and is reported elsewhere.
  const found = await Promise.all(dirs.map((dir) => lookAt(dir, () => stat(dir).catch(() => undefined))));
  return dirs.filter((_, at) => found[at] && found.findIndex((one) => one?.dev === found[at]?.dev) === at);
}

/** Fills the file with random bytes, which no file system can compress. */
async function fill(path: string): Promise<void> {
  const noise = crypto.getRandomValues(new Uint8Array(65_536));
  try {
    await using file = await open(path, "w", 0o600);
    for (let at = 0; at < RESERVE_BYTES; at += noise.byteLength)
      await file.write(noise, 0, noise.byteLength, at);
  } catch (error) {
    // The disk filled up meanwhile: half a reserve takes space and is too small to help.
    await rm(path, { force: true });
    throw error;
  }
}
