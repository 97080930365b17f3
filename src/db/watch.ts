import { messageOf } from "../errors.ts";
import { inodeOf } from "./inode.ts";
import { findFaults, isUnread } from "./integrity.ts";
import { isDamage, isStorageFault, StorageError, storageWords } from "./storage-faults.ts";

/** A fault that goes on is told again this often. */
const REMIND_MS = 60_000;
/** After this long a database that could not be looked through is looked at again, and then twice as long each time. */
const AGAIN_MS = 1_000;
/** A disk that is nearly full takes some writes and refuses others: it is well after this long without a refusal. */
const WELL_MS = 3_000;

type Say = (fields: object, words: string) => void;
export type WatchLog = Record<"error" | "warn" | "info", Say>;

/** Keeps an eye on the file of a database, and says what is wrong once instead of at every mail. */
export interface StorageWatch {
  /** Throws before a commit into files that nobody will find again. */
  refuseIfGone: () => void;
  /** Throws while the database is known to be damaged: writing would make it worse. */
  refuseIfDamaged: () => void;
  /** An error of any read or write. */
  failed: (error: unknown) => void;
  /** A commit has reached the disk. */
  wrote: () => void;
  /** Whether nothing is left at the path of the database. */
  isMissing: () => boolean;
}

/**
 * `path` null: a database in memory, which nothing happens to. `named` leads to it, maybe by links: whoever opens the
 * database next goes that way.
 */
export function watchStorage(path: string | null, log: WatchLog, named = path): StorageWatch {
  const files =
    path === null || named === null
      ? []
      : [named, `${path}-wal`, `${path}-shm`].map((file) => ({ file, inode: inodeOf(file) }));
  const teller = createTeller(log);
  let damage: StorageError | null = null;
  let looked_ms = Number.NEGATIVE_INFINITY;

  let again_ms = AGAIN_MS;

  /**
   * Names what is damaged. A page that was only read wrongly is well again; SQLite takes one that the disk cannot read at the
   * moment for a damaged one, too.
   */
  const lookThrough = async (file: string): Promise<void> => {
    looked_ms = performance.now();
    const faults = await findFaults(file).catch((error: unknown) => [messageOf(error)]);
    if (faults?.length === 0) {
      [damage, again_ms] = [null, AGAIN_MS];
      log.warn({}, "the database was looked through and is sound: the disk gave something else for a while");
    } else if (faults && !isUnread(faults)) log.error({ faults }, "this is damaged in the database");
    else {
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
    refuseIfGone() {
      for (const known of files) {
        const inode = inodeOf(known.file);
        // The log and its index are made by the first use of the database.
        known.inode ??= inode;
        if (inode !== known.inode)
          throw new StorageError(
            "DATABASE_GONE",
            `${known.file} is not the file any more that this server has open`,
          );
      }
    },
    refuseIfDamaged() {
      if (damage) throw damage;
    },
    failed(error) {
      if (!isStorageFault(error)) return;
      teller.failed(error);
      if (!isDamage(error) || damage) return;
      damage = new StorageError("SQLITE_CORRUPT", messageOf(error));
      lookAfter(Math.max(0, looked_ms + REMIND_MS - performance.now()));
    },
    wrote: teller.wrote,
    isMissing: () => path !== null && !isThere(path),
  };
}

/** False where nothing is there. What cannot be reached now may well be there. */
function isThere(path: string): boolean {
  try {
    return inodeOf(path) !== undefined;
  } catch (error) {
    if (error instanceof StorageError) return true;
    throw error;
  }
}

function createTeller(log: WatchLog): { failed: (error: unknown) => void; wrote: () => void } {
  /** When each fault was told last: one may give way to another within the minute. */
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
        `${message}; nothing is taken in until it is well. ${fix}`,
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
