import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { BEFORE_UPGRADE, ensureFolder, keepNewest } from "./kept.ts";

const KEEP = 3;

/**
 * Returns a function that backs up the database and the keys before the first new migration; migrations do not touch
 * the mail files.
 */
export function backupBeforeUpgrade(
  config: Config,
  say: (path: string) => void,
): (first: string) => Promise<void> {
  return async (first) => {
    if (config.database.url === "sqlite::memory:") return;
    // Loaded only here: it runs once for each version.
    const { backupToFile, sourceOf } = await import("./write-backup.ts");
    const { dir } = config.backup;
    const path = join(dir, `before-${first}.zip`);
    say(path);
    await ensureFolder(dir);
    const source = { ...sourceOf(config, Math.floor(Date.now() / 1_000)), mail: false };
    await backupToFile(source, path, new AbortController().signal);
    await keepNewest(path, BEFORE_UPGRADE, KEEP);
  };
}
