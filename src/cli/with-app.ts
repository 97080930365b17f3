import { existsSync } from "node:fs";
import { type App, createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { lockDataFolder } from "../db/database.ts";
import { AppError } from "../errors.ts";
import { createLog } from "../log.ts";
import { type CommonOptions, configOf } from "./options.ts";

/** One short piece of work on the database, next to a running server or without one. `create` makes a new one. */
export async function withApp(
  options: CommonOptions & { create?: boolean },
  work: (app: App) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  if (!options.create) refuseMissing(config);
  using lock = lockDataFolder(config.data.dir);
  const log = createLog({ level: "warn", format: "text" });
  await using app = await createApp(config, { log, may_migrate: lock !== undefined });
  await work(app);
}

function refuseMissing({ data, database }: Config): void {
  if (existsSync(database.url.replace(/^sqlite:/, ""))) return;
  throw new AppError("unavailable", `There is no Mailwright in the data folder ${data.dir}.`, {
    fix: "Name the right one with --config or data.dir, or begin with `mailwright serve` or `mailwright user create`.",
  });
}
