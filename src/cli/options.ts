import { type Config, type ConfigOverrides, loadConfig } from "../config.ts";

export interface CommonOptions {
  config?: string;
  json?: boolean;
}

export const CONFIG_OPTION = [
  "--config <file>",
  "configuration file (default: ./config.toml if it is there)",
] as const;
export const JSON_OPTION = ["--json", "print data as JSON"] as const;

export function configOf(options: CommonOptions, overrides: ConfigOverrides = {}): Config {
  return loadConfig({ ...(options.config === undefined ? {} : { file: options.config }), overrides });
}

/** Prints a value for a machine or, line by line, for a person. */
export function print(options: CommonOptions, value: unknown, lines: string[]): void {
  console.log(options.json ? JSON.stringify(value, null, 2) : lines.join("\n"));
}
