import type { Writable } from "node:stream";
import { AppError, codeOf, messageOf } from "../errors.ts";
import { notABackup } from "./manifest.ts";

const NO_ROOM = /^(ENOSPC|EDQUOT|SQLITE_FULL)/;
const DAMAGED = /^(SQLITE_CORRUPT|SQLITE_NOTADB)/;
const UNUSABLE =
  /^(EACCES|EPERM|EROFS|ENOTDIR|EISDIR|EEXIST|ENOENT|EIO|EXDEV|EBUSY|SQLITE_(BUSY|CANTOPEN|READONLY|IOERR))/;

export const NO_ROOM_FIX =
  "Make room there, or name a folder on another disk (for those that the server makes: backup.dir).";

/** Returns an AppError that says why a backup could not be made; an unknown error is returned as it is. */
export function backupFault(error: unknown, folder: string): unknown {
  const code = codeOf(error);
  if (NO_ROOM.test(code))
    return new AppError("unavailable", `There is no room for a backup in ${folder}.`, {
      fix: NO_ROOM_FIX,
    });
  if (code === "EFBIG")
    return new AppError("unavailable", `A backup in ${folder} would be larger than a file may be.`, {
      fix: "Raise the limit on the size of files (LimitFSIZE of the service, ulimit -f), or name a folder on another disk, if it is the disk that takes none so large (FAT: 4 GB).",
    });
  if (DAMAGED.test(code))
    return new AppError(
      "unavailable",
      `The database is damaged, so no backup was made: ${messageOf(error)}.`,
      {
        fix: "Keep the older backups, and restore the newest good one.",
      },
    );
  if (!UNUSABLE.test(code)) return error;
  return new AppError("unavailable", `The backup cannot be written to ${folder}: ${messageOf(error)}.`, {
    fix: "Name a folder that this user may write to (for those that the server makes: backup.dir).",
  });
}

/**
 * Returns an AppError for a backup whose reader (a program behind a pipe, a disk) broke off; undefined for other
 * errors.
 */
export function streamFault(error: unknown, out: Writable): AppError | undefined {
  if (out.errored !== error) return undefined;
  return new AppError("unavailable", `The backup was not taken to its end: ${messageOf(error)}.`, {
    fix: "What came out is no backup. See why the program or disk behind it stopped, and begin again.",
  });
}

/** Returns an AppError that says why a backup could not be restored; an unknown error is returned as it is. */
export function restoreFault(error: unknown, dir: string): unknown {
  const code = codeOf(error);
  if (DAMAGED.test(code)) return notABackup(`its database is damaged (${messageOf(error)})`);
  if (!NO_ROOM.test(code) && !UNUSABLE.test(code)) return error;
  return new AppError("unavailable", `The backup cannot be restored into ${dir}: ${messageOf(error)}.`, {
    fix: "Mend that, and restore again.",
  });
}
