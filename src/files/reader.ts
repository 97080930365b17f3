import { createFairPool, type FairLimits, WORKERS_FOR_ALL } from "../lib/fair-pool.ts";
import type { WorkProblem } from "../lib/worker-pool.ts";
import { counted, DAMAGED, type FileReading, type FileToRead, notRead } from "./reading.ts";
import { shownName, shownType } from "./shown-name.ts";
import { MB } from "../lib/sizes.ts";

/** Time of the processor for one file, after which its process is ended, and for all files of a message together. */
const READ_FILE_WITHIN_MS = 10_000;
const READ_ALL_WITHIN_MS = 30_000;
/** Bytes that a process may grow by while one file is read. */
const MAX_MEMORY_BYTES = 512 * MB;
const PROCESSES = { size: WORKERS_FOR_ALL, memory_bytes: MAX_MEMORY_BYTES, in_process: true };
const MAX_FILE_BYTES = 30 * MB;
/** Characters of text from all files of a message that a model is shown. */
const MAX_ALL_CHARS = 400_000;

export interface FileReader extends AsyncDisposable {
  /**
   * Reads each file by itself, so that one that breaks its reader affects no other. A reading says what is wrong with
   * its file. Accounts take turns file by file. Rejects only with the reason of `signal`, or when the reader is closed.
   */
  read(files: FileToRead[], signal: AbortSignal, from?: ReadFor): Promise<FileReading[]>;
}

/** The account that takes the turn. `strangers` is true for files that strangers sent to it. */
export interface ReadFor {
  account: string;
  strangers?: boolean;
}

/** The answer of such a process: the reading of a file, and how much time of the processor it took. */
export interface WorkerReading {
  reading: FileReading;
  took_ms: number;
}

/** Creates a reader with processes that start when needed and end when idle. */
export function createFileReader({
  read_file_within_ms = READ_FILE_WITHIN_MS,
  read_all_within_ms = READ_ALL_WITHIN_MS,
  ...limits
}: { read_file_within_ms?: number; read_all_within_ms?: number } & FairLimits = {}): FileReader {
  const pool = createFairPool<WorkerReading>("files/read-worker.ts", { ...PROCESSES, ...limits });

  const readOne = async (
    file: FileToRead,
    { limit_ms, turn }: { limit_ms: number; turn: { who: string; strangers: boolean; signal: AbortSignal } },
  ): Promise<WorkerReading> => {
    if (file.bytes.byteLength > MAX_FILE_BYTES)
      return { reading: unread(file, `is larger than ${MAX_FILE_BYTES / MB} MB`), took_ms: 0 };
    if (limit_ms <= 0) return { reading: unread(file, OUT_OF_TIME), took_ms: 0 };
    const outcome = await pool.run(turn, () => ({
      input: file,
      limit_ms,
      transfer: [file.bytes.buffer as ArrayBuffer],
    }));
    return outcome.ok
      ? outcome.output
      : { reading: unread(file, PROBLEMS[outcome.problem]), took_ms: limit_ms };
  };

  return {
    async read(files, signal, { account, strangers = false } = { account: "" }) {
      const readings: FileReading[] = [];
      let left_ms = read_all_within_ms;
      let room = MAX_ALL_CHARS;
      for (const file of files) {
        signal.throwIfAborted();
        const limit_ms = Math.min(read_file_within_ms, left_ms);
        const turn = { who: account, strangers, signal };
        const { reading, took_ms } = await readOne(file, { limit_ms, turn });
        left_ms -= took_ms;
        const fitted = fitInto(reading, room);
        room -= fitted.text.length;
        readings.push(fitted);
      }
      return readings;
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

const OUT_OF_TIME = "(reading the other files took too long)";
const PROBLEMS: Record<WorkProblem, string> = {
  too_slow: "takes too long to read",
  held_up: "could not be read, because the server was too busy; send it again later",
  too_much_memory: "takes too much memory to read",
  crashed: DAMAGED,
};

function unread({ filename, content_type, bytes }: FileToRead, reason: string): FileReading {
  const name = shownName(filename);
  return {
    filename: name,
    content_type: shownType(content_type),
    size: bytes.byteLength,
    kind: "other",
    text: "",
    note: notRead(name, reason),
    summary: "",
  };
}

function fitInto(reading: FileReading, room: number): FileReading {
  const { filename, text } = reading;
  if (text.length <= room) return reading;
  if (room === 0) return { ...reading, text: "", note: notRead(filename, "(too many files)"), summary: "" };
  const shown = text.slice(0, room).toWellFormed();
  const summary = `the first ${counted(shown.length, "character")}`;
  return {
    ...reading,
    text: shown,
    note: `Of ${filename} only the first ${counted(shown.length, "character")} were read.`,
    summary,
  };
}
