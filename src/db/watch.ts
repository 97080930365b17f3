import { MailFilesError } from "../lib/own-faults.ts";
import { messageOf } from "../errors.ts";
import { inodeOf } from "./inode.ts";
import { findFaults, isUnread } from "./integrity.ts";
import { isDamage, isStorageFault, StorageError, storageWords } from "./storage-faults.ts";

/** How often a fault that persists is logged again. */
const REMIND_MS = 60_000;
/**
 * Delay after which a database is checked again that could not be checked, was found damaged once, or gave a fault
 * anew; doubled each time.
 */
const AGAIN_MS = 1_000;
/**
 * How long without a refused write until the fault counts as over: a nearly full disk takes some writes and refuses
 * others.
 */
const WELL_MS = 3_000;

type Say = (fields: object, words: string) => void;
export type WatchLog = Record<"error" | "warn" | "info", Say>;

/** Watches the files of a database, and logs a fault once instead of at every mail. */
export interface StorageWatch {
  /** Throws if the files at the database's paths are not those that are open: a commit into these would be lost. */
  refuseIfGone: () => void;
  /** Throws while the database is known to be damaged: writing would damage it further. */
  refuseIfDamaged: () => void;
  /** Must be called with every error of a read or write. */
  failed: (error: unknown) => void;
  /** Must be called when a commit has reached the disk. */
  wrote: () => void;
  /** Returns whether nothing is at the path of the database. */
  isMissing: () => boolean;
}

/**
 * Watches the database at `path`; null for one in memory, which needs no watching. `named` is the configured path to
 * it, maybe over symbolic links, that the next process will follow. `mend` is called for damage that stays, and says
 * whether it is `mended`.
 */
export function watchStorage(
  path: string | null,
  log: WatchLog,
  {
    named = path,
    mend = async () => "damaged",
  }: { named?: string | null; mend?: () => Promise<string> } = {},
): StorageWatch {
  const files = path === null || named === null ? [] : [named, `${path}-wal`, `${path}-shm`].map(seen);
  const teller = createTeller(log);
  let damage: StorageError | null = null;
  const pauses = createPauses();
  let again_ms = AGAIN_MS;
  let found_before = false;
  const isWell = () => void ([damage, again_ms, found_before] = [null, AGAIN_MS, false]);

  /**
   * Checks the database and logs what is damaged. A fault may be gone by now: SQLite also reports damage for a page
   * that the disk failed to read for a moment.
   */
  const lookThrough = async (file: string): Promise<void> => {
    pauses.looked();
    const faults = await findFaults(file).catch((error: unknown) => [messageOf(error)]);
    if (faults?.length === 0) {
      isWell();
      log.warn({}, "the database was looked through and is sound: the disk gave something else for a while");
    } else if (faults && !isUnread(faults)) {
      // A disk that fails may say the same of a sound one: whoever restores a backup loses what came after it.
      if (!found_before) {
        found_before = true;
        return lookAfter(AGAIN_MS);
      }
      if (["mended", "worn"].includes(await mend())) return isWell();
      damage = new StorageError("DATABASE_DAMAGED", faults[0] ?? "");
      log.error({ faults }, "this is damaged in the database");
      teller.failed(damage);
    } else {
      if (faults) damage = new StorageError("SQLITE_IOERR", "the disk cannot be read");
      if (again_ms === AGAIN_MS)
        log.warn({ faults }, "the database could not be looked through; that is tried again until it can be");
      lookAfter(again_ms);
      again_ms = Math.min(2 * again_ms, REMIND_MS);
    }
  };
  const lookAfter = (ms: number): void => {
    setTimeout(() => {
      if (path !== null && isThere(path)) void lookThrough(path);
    }, ms).unref();
  };
  return {
    refuseIfGone: () => refuseIfReplaced(files),
    refuseIfDamaged() {
      if (damage) throw damage;
    },
    failed(error) {
      if (!isStorageFault(error)) return;
      teller.failed(error);
      if (!isDamage(error) || damage) return;
      damage = new StorageError("SQLITE_CORRUPT", messageOf(error));
      lookAfter(pauses.next());
    },
    wrote: teller.wrote,
    isMissing: () => path !== null && !isThere(path),
  };
}

interface SeenFile {
  file: string;
  inode: ReturnType<typeof inodeOf>;
}

function seen(file: string): SeenFile {
  return { file, inode: inodeOf(file) };
}

function refuseIfReplaced(files: SeenFile[]): void {
  for (const known of files) {
    const inode = inodeOf(known.file);
    // SQLite creates the log and its index at the first use of the database.
    known.inode ??= inode;
    if (inode !== known.inode)
      throw new StorageError(
        "DATABASE_GONE",
        `${known.file} is not the file any more that this server has open`,
      );
  }
}

/** Spaces out the checks of a database that gives one fault after the other; after a calm they are close again. */
function createPauses(): { looked: () => void; next: () => number } {
  let looked_ms = Number.NEGATIVE_INFINITY;
  let gap_ms = AGAIN_MS;
  return {
    looked: () => void (looked_ms = performance.now()),
    next() {
      const since_ms = performance.now() - looked_ms;
      if (since_ms > REMIND_MS) gap_ms = AGAIN_MS;
      const wait_ms = Math.max(0, gap_ms - since_ms);
      gap_ms = Math.min(2 * gap_ms, REMIND_MS);
      return wait_ms;
    },
  };
}

/** Returns false where nothing is at the path, and true where it cannot be reached: the file may still be there. */
function isThere(path: string): boolean {
  try {
    return inodeOf(path) !== undefined;
  } catch (error) {
    if (error instanceof StorageError) return true;
    throw error;
  }
}

/** What a fault keeps from being done. */
function whatWaits(error: unknown): string {
  return error instanceof MailFilesError ? "large mails and files are put off" : "nothing is taken in";
}

function createTeller(log: WatchLog): { failed: (error: unknown) => void; wrote: () => void } {
  /** When each fault was last logged: faults may alternate within a minute. */
  const said = new Map<string, number>();
  let failed_ms: number | null = null;
  let refusals = 0;
  return {
    failed(error) {
      failed_ms = performance.now();
      refusals += 1;
      const { message, fix } = storageWords(error);
      if (failed_ms - (said.get(message) ?? Number.NEGATIVE_INFINITY) < REMIND_MS) return;
      said.set(message, failed_ms);
      log.error(
        { problem: messageOf(error), refusals },
        `${message}; ${whatWaits(error)} until it is well. ${fix}`,
      );
    },
    wrote() {
      if (failed_ms === null || performance.now() - failed_ms < WELL_MS) return;
      log.info({ refusals }, "the database can be written again");
      said.clear();
      [failed_ms, refusals] = [null, 0];
    },
  };
}
