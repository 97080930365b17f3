import { statSync } from "node:fs";
import { codeOf } from "../errors.ts";
import { StorageError } from "./storage-faults.ts";

/**
 * Returns the inode of a file; undefined where nothing is at its path. Throws a StorageError when that cannot be
 * determined because a folder on the way cannot be entered or its file system does not answer.
 */
export function inodeOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino;
  } catch (error) {
    throw new StorageError("FOLDER_CLOSED", `${path} cannot be reached (${codeOf(error)})`);
  }
}
