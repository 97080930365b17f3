import type Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { messageOf } from "../errors.ts";
import { bytesOf } from "./free-pages.ts";
import type { Write } from "./group-commit.ts";
import { type Damage, examine } from "./examine.ts";
import { findDamage, isUnread, nothingKnown } from "./integrity.ts";
import { KEEPERS, placesOfIndexAlone } from "./segment-rows.ts";
import { StorageError } from "./storage-faults.ts";
import type { StorageWatch, WatchLog } from "./watch.ts";
import { MB } from "../lib/sizes.ts";

/** Up to this size a database is looked through on this thread: to start another one takes longer. */
const SMALL_BYTES = MB;
/** Up to this size a database is written anew, which takes some seconds. */
const WRITTEN_ANEW_BYTES = 256 * MB;

/**
 * `mended`: indexes were made anew. `worn`: every row is there and found, and only what is noted of free room is wrong.
 * `unread`: the disk cannot be read, or it takes too long.
 */
export type Looked = "sound" | "mended" | "worn" | "damaged" | "unread";

interface Looking {
  sqlite: Sqlite.Database;
  path: string;
  write: Write;
  watch: StorageWatch;
  log: WatchLog;
  /** Ends the reading that is under way on the connection. */
  endReads: () => void;
  /** Makes the index of words anew. */
  renewIndex: () => Promise<void>;
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
  const before = await damageOf(looking);
  if (before === null) return "unread";
  const { faults, indexes, text_index, lost } = before;
  const of_index = text_index ? await renewed(looking) : "sound";
  if (faults.length === 0) return of_index;
  const can_be_mended = lost.length === 0 && indexes.length > 0;
  if (!can_be_mended || !(await areMadeAnew(looking, before))) return sayWhatIsLeft(looking, before);
  looking.log.error({ faults, indexes }, "indexes of the database were damaged, and have been made anew");
  const after = await damageOf(looking);
  if (after === null) return "unread";
  return after.faults.length === 0 ? "mended" : sayWhatIsLeft(looking, after);
}

/** The index of words is nothing that anything else waits for: where it cannot be made anew now, the next search tries again. */
async function renewed({ renewIndex, log }: Looking): Promise<"mended" | "worn"> {
  try {
    await renewIndex();
    return "mended";
  } catch (error) {
    log.error({ problem: messageOf(error) }, "the damaged index of words could not be set aside yet");
    return "worn";
  }
}

/** Decides about damage that is in no index alone. */
async function sayWhatIsLeft(looking: Looking, { faults, lost, is_worn }: Damage): Promise<Looked> {
  const { log, watch } = looking;
  if (is_worn && (await isWrittenAnew(looking))) {
    log.error({ faults }, "the database has been written anew: what it notes of its free room was damaged");
    return "mended";
  }
  if (is_worn) {
    log.error({ faults }, WORN);
    return "worn";
  }
  log.error({ faults, lost }, "this is damaged in the database");
  // Where it is more than an index, that is found again, and nothing is written any more.
  watch.failed(new StorageError("SQLITE_CORRUPT", faults[0] ?? ""));
  return "damaged";
}

const WORN =
  "what the database notes of its free room is damaged: all rows are there, and it goes on. To have it made anew: stop the server, mailwright backup FILE, mailwright restore FILE";

/** Writes all pages anew, unless that would hold up everything for long: SQLite refuses to write to a page of which it knows no room. */
async function isWrittenAnew(looking: Looking): Promise<boolean> {
  const { sqlite, write, log, endReads } = looking;
  if (bytesOf(sqlite) > WRITTEN_ANEW_BYTES) return false;
  try {
    // It is not possible in a transaction, nor beside one.
    await write(() => Promise.resolve());
    endReads();
    sqlite.exec("vacuum");
    return (await damageOf(looking))?.faults.length === 0;
  } catch (error) {
    log.error({ problem: messageOf(error) }, "the database could not be written anew");
    return false;
  }
}

/** Null where nothing is known. */
async function damageOf(looking: Looking): Promise<Damage | null> {
  const damage = await examined(looking).catch((error: unknown) => nothingKnown(messageOf(error)));
  return damage !== null && damage.faults.length > 0 && isUnread(damage.faults) ? null : damage;
}

async function examined({ sqlite, path }: Looking): Promise<Damage | null> {
  const is_small = path === ":memory:" || bytesOf(sqlite) <= SMALL_BYTES;
  return is_small ? examine(sqlite) : findDamage(path);
}

/**
 * Makes indexes anew, and keeps them only if all is well then: a damaged page may lead SQLite to free pages of others as it
 * clears an index.
 */
async function areMadeAnew(looking: Looking, { indexes }: Pick<Damage, "indexes">): Promise<boolean> {
  try {
    await looking.write(async (tx) => {
      for (const keeper of KEEPERS)
        // As long as the index tells of such a place, nobody overwrites what lies there.
        if (indexes.includes(`${keeper}_segment`) && (await placesOfIndexAlone(tx, keeper)) > 0)
          throw new Error(
            `the index of ${keeper} has places in the files of mails that its rows do not have`,
          );
      for (const index of indexes) await sql`reindex ${sql.id(index)}`.execute(tx);
      const { faults, is_worn } = examine(looking.sqlite);
      if (faults.length > 0 && !is_worn) throw new Error(`this is damaged besides: ${faults.join("; ")}`);
    });
    return true;
  } catch (error) {
    looking.log.error({ problem: messageOf(error), indexes }, "damaged indexes could not be made anew");
    return false;
  }
}
