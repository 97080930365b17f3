import { type Config, type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";

/** Stands for the data folder in what is kept. */
const FOLDER = "/the-data-folder-of-a-test";
const known = new Map<string, Config>();

/** As `defaultConfig`, which takes as long as a tenth of a server: it is done once for the same keys. */
export function testConfig(overrides: ConfigOverrides, dir: string): Config {
  const key = JSON.stringify(overrides, (_name, value: unknown) =>
    typeof value === "number" || value === undefined ? String(value) : value,
  );
  const kept = known.get(key) ?? defaultConfig({ ...overrides, data: { dir: FOLDER } });
  known.set(key, kept);
  const config = structuredClone(kept);
  config.data.dir = dir;
  config.database.url = config.database.url.replace(FOLDER, dir);
  config.backup.dir = config.backup.dir.replace(FOLDER, dir);
  return config;
}
