import { type Config, type ConfigOverrides, loadConfig } from "../config/config.ts";

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

/** What a terminal may take for a command, or shows in another order; JSON lets it stand in its strings. */
const TERMINAL_CONTROLS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Prints a value for a machine or, line by line, for a person. */
export function print(options: CommonOptions, value: unknown, lines: string[]): void {
  console.log(options.json ? safeJson(value) : lines.join("\n"));
}

function safeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    TERMINAL_CONTROLS,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
