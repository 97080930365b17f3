/** What the file system and SQLite say when the disk cannot be written or read now, through no fault of the operation. */
const DISK =
  /^(SQLITE_(BUSY|CANTOPEN|FULL|IOERR|LOCKED|NOMEM|READONLY)|ENOSPC|EDQUOT|EIO|EROFS|EMFILE|ENFILE|DATABASE_GONE|SEGMENT_GONE)/;
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB)/;

const LOOK_AT_DISK =
  "See what the system says about the disk (dmesg), and whether its cable and power are well.";
const WORDS: [RegExp, string, string][] = [
  [
    DAMAGE,
    "The database is damaged",
    `Stop the server and restore a backup: mailwright restore FILE. ${LOOK_AT_DISK}`,
  ],
  [/^(SQLITE_FULL|ENOSPC|EDQUOT)/, "The disk is full", "Make room on it; nothing else is to be done."],
  [/^(SQLITE_READONLY|EROFS)/, "The disk can be read, but not written", LOOK_AT_DISK],
  [/^(SQLITE_IOERR|EIO)/, "The disk does not do what it is asked to", LOOK_AT_DISK],
  [
    /^SQLITE_(BUSY|LOCKED)/,
    "Another program holds the database",
    "Let that end: a copy that is being made, a shell with an open transaction.",
  ],
  [
    /^DATABASE_GONE/,
    "The database file was deleted, moved or replaced while the server runs",
    "Put it back where it was, or restart the server: what it still has open is written back as it stops.",
  ],
  [
    /^SEGMENT_GONE/,
    "A file of mails was deleted, moved or replaced while the server runs",
    "Put it back where it was: what it holds is found again within the hour. What comes in next goes into a new file.",
  ],
];

/** Whether `error` says that the disk, or what is on it, keeps us from doing this now. */
export function isStorageFault(error: unknown): boolean {
  const code = codeOf(error);
  return DISK.test(code) || DAMAGE.test(code);
}

/** Whether what was read is no sound database. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.test(codeOf(error));
}

/** What a storage fault means, and what to do about it. */
export function storageWords(error: unknown): { message: string; fix: string } {
  const code = codeOf(error);
  const [, message, fix] = WORDS.find(([pattern]) => pattern.test(code)) ?? [
    DISK,
    `The database cannot be used (${code})`,
    LOOK_AT_DISK,
  ];
  return { message, fix };
}

/** Thrown before a write that would be lost, or make things worse. */
export class StorageError extends Error {
  readonly code: "DATABASE_GONE" | "SQLITE_CORRUPT" | "SQLITE_FULL";

  constructor(code: StorageError["code"], message: string) {
    super(message);
    this.name = "StorageError";
    this.code = code;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
