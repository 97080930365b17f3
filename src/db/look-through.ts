import type Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { messageOf } from "../errors.ts";
import type { Write } from "./group-commit.ts";
import { damagedIndexes } from "./index-faults.ts";
import { allFaultsIn, findAllFaults, isUnread } from "./integrity.ts";
import { KEEPERS, placesOfIndexAlone } from "./segment-rows.ts";
import { StorageError } from "./storage-faults.ts";
import type { StorageWatch, WatchLog } from "./watch.ts";

/** Up to this size a database is looked through on this thread: to start another one takes longer. */
const SMALL_BYTES = 1_048_576;

/** `mended`: indexes were made anew. `unread`: the disk cannot be read, or it takes too long. */
export type Looked = "sound" | "mended" | "damaged" | "unread";

interface Looking {
  sqlite: Sqlite.Database;
  path: string;
  write: Write;
  watch: StorageWatch;
  log: WatchLog;
}

/**
 * Returns a function that compares all tables with their indexes, which SQLite itself does not do: what an index has
 * lost is not there for it, without an error. It makes such indexes anew from their tables. Several calls at once look
 * once.
 */
export function createLookThrough(looking: Looking): () => Promise<Looked> {
  let looks: Promise<Looked> | undefined;
  return () => (looks ??= lookThrough(looking).finally(() => (looks = undefined)));
}

async function lookThrough(looking: Looking): Promise<Looked> {
  const { log, watch } = looking;
  const faults = await faultsOf(looking);
  if (faults === null) return "unread";
  if (faults.length === 0) return "sound";
  const indexes = damagedIndexes(faults);
  if (indexes !== undefined && (await areMadeAnew(looking, indexes))) {
    log.error({ faults, indexes }, "indexes of the database were damaged, and have been made anew");
    return "mended";
  }
  log.error({ faults }, "this is damaged in the database");
  // Where it is more than an index, that is found again, and nothing is written any more.
  watch.failed(new StorageError("SQLITE_CORRUPT", faults[0] ?? ""));
  return "damaged";
}

/** Null where nothing is known. */
async function faultsOf(looking: Looking): Promise<string[] | null> {
  const faults = await findAll(looking).catch((error: unknown) => [messageOf(error)]);
  return faults !== null && faults.length > 0 && isUnread(faults) ? null : faults;
}

async function findAll({ sqlite, path }: Looking): Promise<string[] | null> {
  const bytes = (name: string) => sqlite.pragma(name, { simple: true }) as number;
  const is_small = path === ":memory:" || bytes("page_count") * bytes("page_size") <= SMALL_BYTES;
  return is_small ? allFaultsIn(sqlite) : findAllFaults(path);
}

async function areMadeAnew(looking: Looking, indexes: string[]): Promise<boolean> {
  try {
    await looking.write(async (tx) => {
      for (const keeper of KEEPERS)
        // As long as the index tells of such a place, nobody overwrites what lies there.
        if (indexes.includes(`${keeper}_segment`) && (await placesOfIndexAlone(tx, keeper)) > 0)
          throw new Error(
            `the index of ${keeper} has places in the files of mails that its rows do not have`,
          );
      for (const index of indexes) await sql`reindex ${sql.id(index)}`.execute(tx);
    });
    return (await faultsOf(looking))?.length === 0;
  } catch (error) {
    looking.log.error({ problem: messageOf(error), indexes }, "damaged indexes could not be made anew");
    return false;
  }
}
