import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/**
 * Returns the file that `database.url` names (`sqlite:./data/mailwright.db`), or `:memory:`. Follows symbolic links,
 * even to a file that does not exist yet: SQLite puts the log and its index beside the file, not beside the link.
 */
export function databasePath(url: string): string {
  const path = namedPath(url);
  return path === ":memory:" ? path : realPath(resolve(path));
}

/** Returns the path in `database.url` as written, without following symbolic links. */
export function namedPath(url: string): string {
  return url.replace(/^sqlite:/, "");
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    // The error is reported when the file is opened.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return path;
  }
  const target = targetOf(path);
  if (target !== undefined) return realPath(resolve(dirname(path), target));
  return join(realPath(dirname(path)), basename(path));
}

/** Returns the target of a symbolic link, even when nothing is there; undefined where there is no link. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
