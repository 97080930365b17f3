import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/**
 * The file that `database.url` names (`sqlite:./data/mailwright.db`), or `:memory:`. Links are followed, also to a file that
 * is not there yet: SQLite keeps the log and its index beside the file, not beside a link that leads to it.
 */
export function databasePath(url: string): string {
  const path = namedPath(url);
  return path === ":memory:" ? path : realPath(resolve(path));
}

/** Returns the path in `database.url`, with the links on its way. */
export function namedPath(url: string): string {
  return url.replace(/^sqlite:/, "");
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    // Whoever opens it says what is wrong with it.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return path;
  }
  const target = targetOf(path);
  if (target !== undefined) return realPath(resolve(dirname(path), target));
  return join(realPath(dirname(path)), basename(path));
}

/** Returns the target of a link to nothing; undefined where there is no link. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
