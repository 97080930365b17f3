import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type App, createApp } from "../app.ts";
import { isHalfRestored } from "../backup/swap.ts";
import { type Config, defaultConfig, findConfigFile } from "../config.ts";
import { lockStores } from "../db/locks.ts";
import { AppError } from "../errors.ts";
import { refuseAsRoot } from "../lib/start-faults.ts";
import { createLog } from "../log.ts";
import { type CommonOptions, configOf } from "./options.ts";

/**
 * One short piece of work on the database, next to a running server or `alone`. `create` makes a new one; with
 * `"where_configured"` not in a folder that nobody has named, which may be the wrong one.
 */
export async function withApp(
  options: CommonOptions & { create?: true | "where_configured" },
  work: (app: App, alone: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  if (options.create !== true && !(options.create && isPlaceGiven(options, config))) refuseMissing(config);
  refuseAsRoot(config.data.dir);
  using lock = lockStores(config);
  const log = createLog({ level: "warn", format: "text", aside: true });
  await using app = await createApp(config, { log, may_migrate: lock !== undefined });
  await work(app, lock !== undefined);
}

/** As `withApp`, for work that only looks and may take a while: a server can start meanwhile, and nothing is migrated. */
export async function besideServer(
  options: CommonOptions,
  work: (app: App, running: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  refuseMissing(config);
  const lock = lockStores(config);
  lock?.[Symbol.dispose]();
  const log = createLog({ level: "warn", format: "text", aside: true });
  await using app = await createApp(config, { log, may_migrate: false });
  await work(app, lock === undefined);
}

export function refuseMissing({ data, database }: Config): void {
  if (existsSync(database.url.replace(/^sqlite:/, "")) || isHalfRestored(data.dir)) return;
  throw new AppError("unavailable", `There is no Mailwright in the data folder ${resolve(data.dir)}.`, {
    fix: "Go to the folder of your config.toml, name that file with --config, or begin with `mailwright serve` or `mailwright user create`.",
  });
}

function isPlaceGiven({ config: file }: CommonOptions, { data }: Config): boolean {
  return findConfigFile({ file }) !== undefined || data.dir !== defaultConfig().data.dir;
}
