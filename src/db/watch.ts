import { statSync } from "node:fs";
import { messageOf } from "../errors.ts";
import { findFaults } from "./integrity.ts";
import { isDamage, isStorageFault, StorageError, storageWords } from "./storage-faults.ts";

/** A fault that goes on is told again this often. */
const REMIND_MS = 60_000;
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

/** `path` null: a database in memory, which nothing happens to. */
export function watchStorage(path: string | null, log: WatchLog): StorageWatch {
  const files = path === null ? [] : [path, `${path}-wal`].map((file) => ({ file, inode: inodeOf(file) }));
  const teller = createTeller(log);
  let damage: StorageError | null = null;
  let looked_ms = Number.NEGATIVE_INFINITY;

  /** Names what is damaged. A page that was only read wrongly is well again. */
  const lookThrough = async (): Promise<void> => {
    if (path === null || performance.now() - looked_ms < REMIND_MS) return;
    looked_ms = performance.now();
    const faults = await findFaults(path);
    if (faults?.length === 0) {
      damage = null;
      log.warn({}, "the database was looked through and is sound: the disk gave something else once");
    } else if (faults) log.error({ faults }, "this is damaged in the database");
  };
  return {
    refuseIfGone() {
      for (const known of files) {
        const inode = inodeOf(known.file);
        // The log is made by the first use of the database.
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
      void lookThrough();
    },
    wrote: teller.wrote,
    isMissing: () => path !== null && inodeOf(path) === undefined,
  };
}

function createTeller(log: WatchLog): { failed: (error: unknown) => void; wrote: () => void } {
  let said_ms = Number.NEGATIVE_INFINITY;
  let failed_ms: number | null = null;
  let refusals = 0;
  return {
    failed(error) {
      failed_ms = performance.now();
      refusals += 1;
      if (failed_ms - said_ms < REMIND_MS) return;
      said_ms = failed_ms;
      const { message, fix } = storageWords(error);
      log.error(
        { problem: messageOf(error), refusals },
        `${message}; nothing is taken in until it is well. ${fix}`,
      );
    },
    wrote() {
      if (failed_ms === null || performance.now() - failed_ms < WELL_MS) return;
      log.info({ refusals }, "the database can be written again");
      [failed_ms, said_ms, refusals] = [null, Number.NEGATIVE_INFINITY, 0];
    },
  };
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
