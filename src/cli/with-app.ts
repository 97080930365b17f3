import { existsSync } from "node:fs";
import { type App, createApp } from "../app.ts";
import { isHalfRestored } from "../backup/swap.ts";
import type { Config } from "../config.ts";
import { lockDataFolder } from "../db/database.ts";
import { AppError } from "../errors.ts";
import { refuseAsRoot } from "../lib/start-faults.ts";
import { createLog } from "../log.ts";
import { type CommonOptions, configOf } from "./options.ts";

/**
 * One short piece of work on the database, next to a running server or `alone`. `create` makes a new one.
 */
export async function withApp(
  options: CommonOptions & { create?: boolean },
  work: (app: App, alone: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  if (!options.create) refuseMissing(config);
  refuseAsRoot(config.data.dir);
  using lock = lockDataFolder(config.data.dir);
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
  const lock = lockDataFolder(config.data.dir);
  lock?.[Symbol.dispose]();
  const log = createLog({ level: "warn", format: "text", aside: true });
  await using app = await createApp(config, { log, may_migrate: false });
  await work(app, lock === undefined);
}

export function refuseMissing({ data, database }: Config): void {
  if (existsSync(database.url.replace(/^sqlite:/, "")) || isHalfRestored(data.dir)) return;
  throw new AppError("unavailable", `There is no Mailwright in the data folder ${data.dir}.`, {
    fix: "Name the right one with --config or data.dir, or begin with `mailwright serve` or `mailwright user create`.",
  });
}
