import { closeSync, existsSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import type { WatchLog } from "./watch.ts";

/** Two copies of the header of the index of the log (SQLite's walformat, section 2.1), and the count behind them. */
const HEADER_BYTES = 48;
const INDEX_BYTES = 100;
const AT = { max_frame: 16, copied: 96 };

/** Where the log ended when its index was written last. */
export interface LogEnd {
  /** Pages in the log that belong to commits. */
  frames: number;
  /** How many of them had been copied into the database. */
  copied: number;
}

/**
 * Where the process before this one saw the end of the log: it keeps the index for as long as it has the database open,
 * and after a kill it is still there. Undefined where it is not, or was half written. Only for a file that nobody has
 * open, because closing it here would take away the locks of whoever has it open in this process.
 */
export function readLogEnd(path: string): LogEnd | undefined {
  const index = readStart(`${path}-shm`, INDEX_BYTES);
  if (index === undefined) return undefined;
  const [first, second] = [index.subarray(0, HEADER_BYTES), index.subarray(HEADER_BYTES, 2 * HEADER_BYTES)];
  if (!first.equals(second)) return undefined;
  // In the byte order of the machine, which is that of the one that wrote it.
  const words = new Uint32Array(new Uint8Array(index).buffer);
  return { frames: words[AT.max_frame / 4] ?? 0, copied: words[AT.copied / 4] ?? 0 };
}

/**
 * How many pages of acknowledged commits the log has lost: SQLite reads it up to the first that is damaged, and takes what
 * follows for what never was. `before` was read before the database was opened.
 */
export function lostPages(sqlite: Sqlite.Database, before: LogEnd | undefined): number {
  if (before === undefined || before.copied >= before.frames) return 0;
  const [now] = sqlite.pragma("wal_checkpoint(PASSIVE)") as { log: number }[];
  return Math.max(0, before.frames - Math.max(0, now?.log ?? 0));
}

/** Says it loudly, and keeps it beside the database until somebody has cared for it. */
export function noteLoss(path: string, pages: number, log: WatchLog): void {
  if (pages === 0) return;
  const lost = `${new Date().toISOString()}: ${pages} ${pages === 1 ? "page" : "pages"} at the end of the database's log could not be read back`;
  writeFileSync(noteOf(path), `${lost}\n`, { flag: "a", mode: 0o600 });
  log.error({ pages, fix: MEND }, "commits that were acknowledged are missing from the database's log");
}

/** The note of what was lost, with the mend. */
export function lossNoted(path: string): string | undefined {
  const note = noteOf(path);
  if (!existsSync(note)) return undefined;
  return `${readFileSync(note, "utf8").trim().split("\n").join("; ")}. ${MEND} Then delete ${note}.`;
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
