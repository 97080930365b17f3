import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import type { WatchLog } from "./watch.ts";

/**
 * Layout of the index of the log, `-shm` (SQLite's walformat, section 2.1): two copies of a header, then the checkpoint
 * count.
 */
const HEADER_BYTES = 48;
const INDEX_BYTES = 100;
const AT = { max_frame: 16, salts: 32, copied: 96 };
/** Layout of the header of the log itself (SQLite's file format, section 4.1). */
const LOG_HEADER_BYTES = 32;
const LOG_AT = { salts: 16, sums: 24 };
const SALT_BYTES = 8;
/**
 * The first salt grows by one whenever the log begins anew. An index ahead by at most this many belongs to a later log.
 */
const LATER_LOGS = 65_536;

/** The end of the log when its index was last written. */
export interface LogEnd {
  /** Pages in the log that belong to commits. */
  frames: number;
  /** How many of them had been copied into the database. */
  copied: number;
}

/**
 * Returns where the previous process saw the end of the log. The index exists while a process has the database open and
 * survives a kill. Returns undefined when it is missing or half written. Call it only while this process has the
 * database closed: closing the file here would release the locks of every connection in this process (POSIX).
 */
export function readLogEnd(path: string): LogEnd | undefined {
  const index = readStart(`${path}-shm`, INDEX_BYTES);
  if (index === undefined) return undefined;
  const [first, second] = [index.subarray(0, HEADER_BYTES), index.subarray(HEADER_BYTES, 2 * HEADER_BYTES)];
  if (!first.equals(second) || isOfEarlierLog(first, readStart(`${path}-wal`, LOG_HEADER_BYTES)))
    return undefined;
  // The index is in the byte order of the machine that wrote it, which is this one.
  const words = new Uint32Array(new Uint8Array(index).buffer);
  return { frames: words[AT.max_frame / 4] ?? 0, copied: words[AT.copied / 4] ?? 0 };
}

/**
 * Returns whether the index belongs to an earlier log than the file holds. Nothing syncs the index, so after a power
 * cut it may describe a log that has since been copied back and begun anew. The header of the log counts only if its
 * checksum fits.
 */
function isOfEarlierLog(index: Buffer, log: Buffer | undefined): boolean {
  if (log === undefined || !hasFittingSum(log)) return false;
  const [seen, there] = [index.subarray(AT.salts), log.subarray(LOG_AT.salts)];
  if (seen.compare(there, 0, SALT_BYTES, 0, SALT_BYTES) === 0) return false;
  return (seen.readUInt32BE() - there.readUInt32BE()) >>> 0 > LATER_LOGS;
}

function hasFittingSum(log: Buffer): boolean {
  // The last bit of the magic number says in which byte order the checksum is computed.
  const word = (at: number): number =>
    log.readUInt32BE() % 2 === 1 ? log.readUInt32BE(at) : log.readUInt32LE(at);
  let [one, two] = [0, 0];
  for (let at = 0; at < LOG_AT.sums; at += 8) {
    one = (one + word(at) + two) >>> 0;
    two = (two + word(at + 4) + one) >>> 0;
  }
  return log.readUInt32BE(LOG_AT.sums) === one && log.readUInt32BE(LOG_AT.sums + 4) === two;
}

/**
 * Returns how many pages of acknowledged commits the log has lost: SQLite reads up to the first damaged page and
 * ignores the rest. `before` must be read before the database is opened.
 */
export function lostPages(sqlite: Sqlite.Database, before: LogEnd | undefined): number {
  if (before === undefined || before.copied >= before.frames) return 0;
  const [now] = sqlite.pragma("wal_checkpoint(PASSIVE)") as { log: number }[];
  return Math.max(0, before.frames - Math.max(0, now?.log ?? 0));
}

/**
 * Logs the loss as an error and stores a note beside the database until the operator deletes it. Returns the warning
 * itself when the note could not be written.
 */
export function recordLoss(path: string, pages: number, log: WatchLog): string | undefined {
  if (pages === 0) return undefined;
  log.error({ pages, fix: MEND }, "commits that were acknowledged are missing from the database's log");
  const lost = `${new Date().toISOString()}: ${pages} ${pages === 1 ? "page" : "pages"} at the end of the database's log could not be read back`;
  try {
    addNote(path, `${lost}\n`);
    return undefined;
  } catch (error) {
    log.error(
      { problem: messageOf(error) },
      `${noteOf(path)}, which was to tell of it, could not be written`,
    );
    return `${lost}. ${MEND}`;
  }
}

/**
 * Appends to the note. If root runs this command, the note gets the owner of the database, so that the server can read
 * it.
 */
function addNote(path: string, text: string): void {
  const note = noteOf(path);
  const file = openSync(note, "a", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  const { uid, gid } = statSync(path);
  if (process.getuid?.() === 0) chownSync(note, uid, gid);
}

/** Returns the stored note of what was lost, with what to do; undefined where there is none. */
export function storedLossWarning(path: string): string | undefined {
  const note = noteOf(path);
  if (!existsSync(note)) return undefined;
  const lost = readFileSync(note, "utf8").trim() || "Part of the database's log could not be read back";
  return `${lost.split("\n").join("; ")}. ${MEND} Then delete ${note}.`;
}

const MEND =
  "Mails and calls that were accepted shortly before that start may be missing: ask for them to be sent again. See what the system says about the disk (dmesg).";

function noteOf(path: string): string {
  return `${path}-lost`;
}

function readStart(path: string, bytes: number): Buffer | undefined {
  try {
    const file = openSync(path, "r");
    try {
      const start = Buffer.alloc(bytes);
      return readSync(file, start, 0, bytes, 0) === bytes ? start : undefined;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
