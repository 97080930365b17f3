import { readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { databasePath } from "../db/database-path.ts";
import type { Config } from "../config/config.ts";

/** Where restores keep what was there before, in the data folder. */
export const POINTS = "restore-points";

/** Where the former database is kept that is not in the data folder. */
export function keptBeside(database: string, point: string): string {
  return `${database}.before-${basename(point)}`;
}

/**
 * Path of a restore point whose database may name mails in the files that are in use: its restore left them where they
 * were, so it has no mails of its own. Undefined where there is none.
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
