import { readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { databasePath } from "../db/database-path.ts";
import type { Config } from "../config/config.ts";

/** The folder in the data folder in which restores keep the former content. */
export const POINTS = "restore-points";

/** Returns where the former database is kept if it is outside of the data folder. */
export function keptBeside(database: string, point: string): string {
  return `${database}.before-${basename(point)}`;
}

/**
 * Returns the path of a restore point whose database may reference mails in the current files: its restore left these
 * in place, so it has none of its own. Undefined where there is none.
 */
export async function pointWithoutMail({
  data,
  database,
}: Pick<Config, "data" | "database">): Promise<string | undefined> {
  const points = join(data.dir, POINTS);
  for (const name of await namesIn(points)) {
    const content = await namesIn(join(points, name));
    if (content.length > 0 && !content.includes("mail")) return join(points, name);
  }
  const path = databasePath(database.url);
  const start = keptBeside(basename(path), "");
  const beside = path === ":memory:" ? [] : await namesIn(dirname(path));
  const kept = beside.find(
    (name) => name.startsWith(start) && !existsSync(join(points, name.slice(start.length), "mail")),
  );
  return kept === undefined ? undefined : join(dirname(path), kept);
}

async function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
}
