import { accessSync, constants, existsSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { AppError, codeOf, messageOf } from "../errors.ts";

const UNOPENED = /^SQLITE_(CANTOPEN|READONLY)/;
const UNUSABLE = /^(EACCES|EPERM|EROFS|EEXIST|ENOTDIR|ENOENT|ENOSPC|SQLITE_IOERR)/;
const DAMAGED = /^(SQLITE_NOTADB|SQLITE_CORRUPT)/;

/**
 * Returns an AppError that says why a listener could not be opened, with the setting to change; an unknown error is
 * returned as it is.
 */
export function listenFault(error: unknown, listen: { setting: string; value: string }): unknown {
  const { setting, value } = listen;
  const fix = `Choose another with ${setting}.`;
  switch (codeOf(error)) {
    case "EADDRINUSE":
      return new AppError("unavailable", `${value} is in use by another program.`, {
        fix: `Stop it, or choose another port with ${setting}.`,
      });
    case "EACCES":
      return new AppError("unavailable", `This user may not open ${value}: ports below 1024 are reserved.`, {
        fix: `Forward the port to ${setting}, or allow it once with: setcap cap_net_bind_service=+ep mailwright`,
      });
    case "EADDRNOTAVAIL":
      return new AppError("unavailable", `${value} is not an address of this machine.`, { fix });
    case "ENOENT":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new AppError("unavailable", `The host in ${value} is not known.`, { fix });
    default:
      return error;
  }
}

/** Returns an AppError that says why the data folder cannot be used; an unknown error is returned as it is. */
export function folderFault(error: unknown, dir: string): unknown {
  const code = codeOf(error);
  if (DAMAGED.test(code))
    return new AppError("unavailable", `The database in ${dir} is damaged, or no database at all.`, {
      fix: "Restore the data folder from a backup.",
    });
  const is_unopened = UNOPENED.test(code);
  if (!is_unopened && !UNUSABLE.test(code)) return error;
  if (code === "EROFS" || (is_unopened && isOnReadOnlyDisk(dir)))
    return readOnlyFault("data folder", dir, workOnCopy(dir));
  return new AppError("unavailable", `The data folder ${dir} cannot be used: ${messageOf(error)}.`, {
    fix: is_unopened
      ? `Give the folder and all that is in it to the user that runs the server, with chown -R, and let that user write to it: chmod -R u+rwX ${dir}`
      : "Make it a folder that this user may write to, or name another with data.dir.",
  });
}

/** Returns an AppError that says why the folder of mails cannot be used; an unknown error is returned as it is. */
export function mailFolderFault(error: unknown, path: string): unknown {
  if (!UNUSABLE.test(codeOf(error))) return error;
  if (codeOf(error) === "EROFS") return readOnlyFault("folder of mails", path);
  return new AppError("unavailable", `The folder of mails ${path} cannot be used: ${messageOf(error)}.`, {
    fix: "Mount the disk that it is on, or give it to the user of the server. Without it nobody could tell which mails are lost.",
  });
}

/** Returns a sentence on why the binary's native module was not loaded; undefined for any other error. */
export function loadFault(error: unknown): string | undefined {
  if (codeOf(error) !== "ERR_DLOPEN_FAILED") return undefined;
  return (
    `A part of this program cannot be loaded: ${messageOf(error)}. It is unpacked into the temporary folder ` +
    `${tmpdir()}, which must be there and allow programs to run: mount it without "noexec", or name another with TMPDIR.`
  );
}

/**
 * Throws if root runs this on another user's data folder: files that root creates could not be used by the server,
 * which runs as that user.
 */
export function refuseAsRoot(dir: string): void {
  if (process.getuid?.() !== 0 || !existsSync(dir) || statSync(dir).uid === 0) return;
  throw new AppError("unavailable", `The data folder ${dir} belongs to another user than root.`, {
    fix: `Run this as that user, with: sudo -u "$(stat -c %U ${dir})" mailwright …`,
  });
}

/**
 * Throws if the data folder is read-only: SQLite has to write beside the database even to read it while a server runs.
 */
export function refuseReadOnly(dir: string): void {
  try {
    accessSync(dir, constants.W_OK);
  } catch (error) {
    if (codeOf(error) === "EROFS") throw readOnlyFault("data folder", dir, workOnCopy(dir));
  }
}

function readOnlyFault(what: string, dir: string, or_else = ""): AppError {
  return new AppError("unavailable", `The ${what} ${resolve(dir)} is on a disk that can only be read.`, {
    fix: `Have it written to again (mount -o remount,rw; after a fault of the disk see dmesg first)${or_else}`,
  });
}

function workOnCopy(dir: string): string {
  return `, or work on a copy: cp -a ${resolve(dir)} /elsewhere/data, and then the same command with MAILWRIGHT_DATA__DIR=/elsewhere/data`;
}

/** Tries it: after a fault some file systems refuse to write without being mounted read-only. */
function isOnReadOnlyDisk(dir: string): boolean {
  try {
    rmdirSync(mkdtempSync(join(dir, ".probe-")));
    return false;
  } catch (error) {
    return codeOf(error) === "EROFS";
  }
}
