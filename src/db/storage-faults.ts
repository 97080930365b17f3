import { codeOf } from "../errors.ts";
import { isOutOfHandles, isOutOfTasks, MailFilesError } from "../lib/own-faults.ts";

/**
 * Error codes of the file system and SQLite that mean that the disk cannot be written or read now, through no fault of
 * the operation.
 */
const DISK =
  /^(SQLITE_(BUSY|CANTOPEN|FULL|IOERR|LOCKED|NOMEM|READONLY)|ENOSPC|EDQUOT|EFBIG|EIO|EROFS|DATABASE_GONE|FOLDER_CLOSED|LOCK_GONE|SEGMENT_GONE|CONTENT_MISSING)/;
const DAMAGE = /^(SQLITE_(CORRUPT(?!_VTAB)|NOTADB)|DATABASE_DAMAGED)/;
/** SQLite says so of the index of words alone, which is no loss: all of it can be made anew. */
const INDEX_DAMAGE = "SQLITE_CORRUPT_VTAB";

const LOOK_AT_DISK =
  "See what the system says about the disk (dmesg), and whether its cable and power are well.";
const LOOK_AT_FOLDER =
  "See that the folder mail in the data folder is there, on a disk that is mounted, and belongs to the user that runs the server.";
/** What is said of damage once it has been found, or where nobody looks again. */
export const DAMAGED = {
  message: "The database is damaged",
  fix: `Stop the server and restore a backup: mailwright restore FILE. ${LOOK_AT_DISK}`,
};
const WORDS: [RegExp, string, string][] = [
  [/^DATABASE_DAMAGED/, DAMAGED.message, DAMAGED.fix],
  [
    DAMAGE,
    "The database may be damaged, or the disk gave something else for a moment",
    "It is being looked through, and what is found is said here: nothing is to be done until then. If this is said for minutes, see what `mailwright doctor` finds.",
  ],
  [/^(SQLITE_FULL|ENOSPC)/, "The disk is full", "Make room on it; nothing else is to be done."],
  [
    /^EDQUOT/,
    "The quota of the user that runs the server is used up",
    "Raise it (setquota, edquota), or delete files of that user on the same disk; nothing else is to be done.",
  ],
  [
    /^EFBIG/,
    "A file would grow beyond the limit on the size of files",
    "Raise that limit for the server (LimitFSIZE of the service, ulimit -f) and restart it.",
  ],
  [/^(SQLITE_READONLY|EROFS)/, "The disk can be read, but not written", LOOK_AT_DISK],
  [/^(SQLITE_IOERR|EIO)/, "The disk does not do what it is asked to", LOOK_AT_DISK],
  [
    /^SQLITE_(BUSY|LOCKED)/,
    "Another program holds the database",
    "Let that end: a copy that is being made, a shell with an open transaction.",
  ],
  [
    /^ETIMEDOUT/,
    "The disk of the mail files does not answer",
    "See that the disk or share with the folder mail is there; nothing else is to be done.",
  ],
  [
    /^DATABASE_GONE/,
    "The database file was deleted, moved or replaced while the server runs",
    "Put it back where it was, or restart the server: what it still has open is written back as it stops.",
  ],
  [
    /^FOLDER_CLOSED/,
    "The data folder cannot be entered",
    "See that it, and each folder above it, is there and may be entered by the user that runs the server; nothing else is to be done.",
  ],
  [
    /^LOCK_GONE/,
    "A lock file was deleted, moved or replaced while the server runs",
    "Put it back where it was, or restart the server: as it is, another one can start on the same data.",
  ],
  [
    /^SEGMENT_GONE/,
    "A file of mails was deleted, moved or replaced while the server runs",
    "Put it back where it was: what it holds is found again within the hour. What comes in next goes into a new file.",
  ],
  [
    /^CONTENT_MISSING/,
    "What a mail or a call consists of is missing in the files of mails",
    "Put the file back, or mount its disk: for an hour it is waited for.",
  ],
];

const NO_HANDLES = {
  message: "This server has too many files and connections open",
  fix: "Nothing is to be done if it was a rush. Else raise its limit of open files (LimitNOFILE of the service, ulimit -n).",
};

const NO_TASKS = {
  message: "This server can start no more threads and programs",
  fix: "Nothing is to be done if it was a rush. Else raise its limit (TasksMax of the service, --pids-limit of the container, ulimit -u).",
};

/**
 * Returns whether the cause of an error is the disk, its content, or a lack of file handles or threads, and not the
 * operation.
 */
export function isStorageFault(error: unknown): boolean {
  const code = codeOf(error);
  return (
    DISK.test(code) ||
    DAMAGE.test(code) ||
    error instanceof MailFilesError ||
    isOutOfHandles(error) ||
    isOutOfTasks(error)
  );
}

/** Returns whether the error means that the database is damaged. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.test(codeOf(error)) && !isIndexDamage(error);
}

/** Errors of statements that read and write the index of words alone. */
const of_index = new WeakSet<object>();

/** Notes of an error that its statement had to do with the index of words alone. */
export function noteIndexDamage(error: unknown): void {
  if (error instanceof Error && DAMAGE.test(codeOf(error))) of_index.add(error);
}

/** Returns whether the error means that the index of words is damaged, and nothing else. */
export function isIndexDamage(error: unknown): boolean {
  return codeOf(error) === INDEX_DAMAGE || (error instanceof Error && of_index.has(error));
}

/** Returns a sentence about a storage fault, and what to do about it. */
export function storageWords(error: unknown): { message: string; fix: string } {
  if (isOutOfTasks(error)) return NO_TASKS;
  if (isOutOfHandles(error)) return NO_HANDLES;
  const code = codeOf(error);
  const found = WORDS.find(([pattern]) => pattern.test(code));
  if (found) return { message: found[1], fix: found[2] };
  return error instanceof MailFilesError
    ? { message: `The files of mails cannot be used (${code})`, fix: LOOK_AT_FOLDER }
    : { message: `The database cannot be used (${code})`, fix: LOOK_AT_DISK };
}

/** Thrown before a write that would be lost or do further damage, and where missing bytes may come back. */
export class StorageError extends Error {
  readonly code:
    | "CONTENT_MISSING"
    | "DATABASE_DAMAGED"
    | "DATABASE_GONE"
    | "FOLDER_CLOSED"
    | "LOCK_GONE"
    | "SQLITE_CORRUPT"
    | "SQLITE_FULL"
    | "SQLITE_IOERR";

  constructor(code: StorageError["code"], message: string) {
    super(message);
    this.name = "StorageError";
    this.code = code;
  }
}
