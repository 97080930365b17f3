import { type App, createApp } from "../app.ts";
import { createLog } from "../log.ts";
import { type CommonOptions, configOf } from "./options.ts";

/** One short piece of work on the database, next to a running server or without one. */
export async function withApp(options: CommonOptions, work: (app: App) => Promise<void>): Promise<void> {
  await using app = await createApp(configOf(options), { log: createLog({ level: "warn", format: "text" }) });
  await work(app);
}
