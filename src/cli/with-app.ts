import { resolve } from "node:path";
import { type App, createApp } from "../app.ts";
import { endRestore, hasNoServer } from "../backup/swap.ts";
import { type Config, defaultConfig, findConfigFile } from "../config/config.ts";
import { refuseLost } from "../db/bring-back.ts";
import { openDatabase } from "../db/database.ts";
import { lockStores } from "../db/locks.ts";
import { AppError } from "../errors.ts";
import { refuseAsRoot, refuseReadOnly } from "../lib/start-faults.ts";
import { createLog } from "../lib/log.ts";
import { folderApart } from "./folder-apart.ts";
import { type CommonOptions, configOf } from "./options.ts";

/**
 * Runs one short piece of work on the database, beside a running server or `alone`. `create` allows creating a
 * database; with `"where_configured"` only in a folder that the configuration names, because the default one may be the
 * wrong one.
 */
export async function withApp(
  options: CommonOptions & { create?: true | "where_configured" },
  work: (app: App, alone: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  const is_named = isPlaceGiven(options, config);
  if (options.create === undefined || (options.create !== true && !is_named)) refuseMissing(options, config);
  else if (!is_named && hasNoServer(config))
    console.error(
      `Note: a new server begins in ${resolve(config.data.dir)}: there was none, and neither a config.toml is here nor a folder named.`,
    );
  refuseAsRoot(config.data.dir);
  refuseReadOnly(config.data.dir);
  using lock = lockStores(config);
  const log = createLog({ level: "warn", format: "text", aside: true });
  await using app = await createApp(config, { log, lock, may_migrate: lock !== undefined });
  await work(app, lock !== undefined);
}

/**
 * Like `withApp`, for work that only reads and may take a while: a server can start meanwhile, and nothing is migrated.
 */
export async function besideServer(
  options: CommonOptions,
  work: (app: App, running: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  refuseMissing(options, config);
  const running = (await lookForLoss(config)) === "running";
  const log = createLog({ level: "warn", format: "text", aside: true });
  await using app = await createApp(config, { log, may_migrate: false });
  await work(app, running);
}

/**
 * Records commits that were lost in a crash, before a command opens the database without its lock: closing a database
 * removes the evidence, so where no server runs they have to be recorded first. Throws `unavailable` for a
 * half-restored folder.
 */
export async function lookForLoss(config: Config): Promise<"running" | "looked"> {
  refuseReadOnly(config.data.dir);
  using lock = lockStores(config);
  await endRestore(config.data.dir, false);
  if (!lock) return "running";
  refuseLost(config);
  await using _database = openDatabase(config.database.url, { bring_back: true });
  return "looked";
}

export function refuseMissing(options: CommonOptions, config: Config): void {
  if (!hasNoServer(config)) return;
  refuseLost(config);
  const { dir } = config.data;
  const apart = folderApart(options, config);
  const here = `There is no Mailwright in the data folder ${resolve(dir)}`;
  if (apart !== undefined) {
    const why = `data.dir "${dir}" is taken from the folder in which you are, and not from that of ${apart.named}`;
    const fix = `Run this in the folder in which the server is started, such as ${apart.home}, or set data.dir to the whole path, such as ${apart.beside}.`;
    throw new AppError("unavailable", `${here}: ${why}.`, { fix });
  }
  throw new AppError("unavailable", `${here}.`, {
    fix: "Go to the folder of your config.toml, name that file with --config, or begin with `mailwright serve` or `mailwright user create`.",
  });
}

function isPlaceGiven({ config: file }: CommonOptions, { data }: Config): boolean {
  return findConfigFile({ file }) !== undefined || data.dir !== defaultConfig().data.dir;
}
