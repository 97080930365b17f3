import { dirname, isAbsolute, join, resolve } from "node:path";
import { hasNoServer } from "../backup/swap.ts";
import { type Config, findConfigFile } from "../config/config.ts";
import type { CommonOptions } from "./options.ts";

/**
 * Returns the configuration file and the data folder beside it where that is not the folder that counts: a relative
 * `data.dir` begins in the working directory, in which there is no server.
 */
export function folderApart(
  { config: file }: CommonOptions,
  config: Config,
): { named: string; home: string; beside: string } | undefined {
  const { dir } = config.data;
  const named = findConfigFile({ file });
  if (named === undefined || isAbsolute(dir) || !hasNoServer(config)) return undefined;
  const home = dirname(resolve(named));
  return home === resolve() ? undefined : { named, home, beside: join(home, dir) };
}
