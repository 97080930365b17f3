import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { backupFault } from "./faults.ts";

/** Names of the archives that the server makes by itself: nothing else is ever deleted. */
export const SCHEDULED = /^mailwright-\d{8}T\d{6}Z\.zip$/;
export const BEFORE_UPGRADE = /^before-\d{4}-[a-z0-9-]+\.zip$/;

/** Not what it is in: where a disk is not mounted, its backups must not fill another one. */
export async function ensureFolder(dir: string): Promise<void> {
  await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw backupFault(error, dir);
  });
}

/**
 * Deletes all but the newest `keep` files whose name is of a form. `latest` has just been made: what seems to be newer
 * was made earlier, by a clock that was wrong.
 */
export async function keepNewest(latest: string, form: RegExp, keep: number): Promise<void> {
  const dir = dirname(latest);
  const { mtimeMs: now } = await stat(latest);
  const names = (await readdir(dir)).filter((name) => form.test(name) && name !== basename(latest));
  const found = names.map(async (name) => ({ name, made: (await stat(join(dir, name))).mtimeMs }));
  const isOdd = ({ made }: { made: number }): number => Number(made > now);
  const newest = (await Promise.all(found)).sort((a, b) => isOdd(a) - isOdd(b) || b.made - a.made);
  for (const { name } of newest.slice(keep - 1)) await rm(join(dir, name));
}
