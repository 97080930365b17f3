import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { isHostName } from "./forms.ts";
import { readEnvironment } from "./env.ts";
import { readConfigFile } from "./file.ts";
import { isKey, isNamed } from "./keys.ts";
import type { Node } from "./keys.ts";
import { applyRules, assemble, missRequired, newReading, readTable } from "./load.ts";
import type { Reading } from "./load.ts";
import { SCHEMA } from "./schema.ts";
import type { Values } from "./schema.ts";

/** Credits a month of the largest plan, where plans are sold and none are configured. */
const TEAM_CREDITS = 10_000;

/** The whole configuration, keyed as in the TOML file: `config.smtp.max_message_bytes`. */
export type Config = Values;

/** A part of the configuration, at any depth. */
export type ConfigOverrides = Some<Config>;
type Some<T> = T extends unknown[] ? T : T extends object ? { [K in keyof T]?: Some<T[K]> | undefined } : T;

/** Where a configuration is read from. */
export interface ConfigSources {
  /** The path given with `--config`. */
  file?: string | undefined;
  /** The environment variables; those of the process when left out. */
  env?: Record<string, string | undefined>;
  /** The base folder of relative paths to configuration and secret files; by default the working directory. */
  cwd?: string;
  /** Values of command line flags, which take precedence over all others. */
  overrides?: ConfigOverrides;
}

/** Thrown with all problems of a configuration; `message` lists them. */
export class ConfigError extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
    super([`The configuration has ${count}:`, ...problems.map((problem) => `  - ${problem}`)].join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/**
 * Loads the configuration: flags take precedence over environment, file and defaults, in this order. Throws ConfigError
 * with all problems at once.
 */
export function loadConfig(sources: ConfigSources = {}): Config {
  return finish(readAll(sources));
}

/** A key whose value does not fit this machine, and why, as words that follow its name. */
export interface Misfit {
  path: string;
  words: string;
}

/** Loads like `loadConfig`, with the findings of `look` among the problems. */
export async function checkConfig(
  sources: ConfigSources,
  look: (config: Config) => Promise<Misfit[]>,
): Promise<void> {
  const reading = readAll(sources);
  for (const { path, words } of await look(assemble(reading)))
    reading.problems.push(`${reading.sources.get(path) ?? "defaults"}: ${path} ${words}`);
  finish(reading);
}

/** Returns the defaults with some keys replaced, checked like any configuration; reads no file and no environment. */
export function defaultConfig(overrides: ConfigOverrides = {}): Config {
  const reading = newReading();
  readTable(reading, overrides, () => "overrides");
  return finish(reading);
}

/** Returns the file that `loadConfig` reads: `--config`, else `MAILWRIGHT_CONFIG`, else `config.toml` if it exists. */
export function findConfigFile(sources: ConfigSources = {}): string | undefined {
  const { file, env = process.env, cwd = process.cwd() } = sources;
  const named = file ?? env["MAILWRIGHT_CONFIG"];
  if (named !== undefined && named !== "") return named;
  return existsSync(join(cwd, "config.toml")) ? "config.toml" : undefined;
}

/** Returns the configuration with every secret masked, for display. */
export function maskedConfig(config: Config): Record<string, unknown> {
  const mask = (node: Node, value: unknown): unknown => {
    if (isKey(node)) return typeof value === "string" && node.mask !== undefined ? node.mask(value) : value;
    const members = Object.entries(value as Record<string, unknown>);
    return Object.fromEntries(
      members.map(([name, inner]) => [name, mask(isNamed(node) ? node.each : (node[name] ?? {}), inner)]),
    );
  };
  return mask(SCHEMA, config) as Record<string, unknown>;
}

/** Returns the folders in which programs without a path are looked for. */
export function programPath(): string {
  return process.env["PATH"] ?? "";
}

/** Returns the variables of this process, for what looks for proxies among them. */
export function environment(): Record<string, string | undefined> {
  return process.env;
}

/** Returns how to reach the service manager that expects watchdog messages (sd_notify(3)); undefined if none does. */
export function supervisor(): { socket: string; watchdog_ms: number | null } | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec, WATCHDOG_PID: pid } = process.env;
  if (socket === undefined || socket === "") return undefined;
  const mine = pid === undefined || Number(pid) === process.pid;
  const watchdog_ms = mine && Number(usec) > 0 ? Number(usec) / 1_000 : null;
  return { socket, watchdog_ms };
}

function readAll(sources: ConfigSources): Reading {
  const { env = process.env, cwd = process.cwd(), overrides = {} } = sources;
  const reading = newReading();
  const file = findConfigFile(sources);
  if (file !== undefined) readConfigFile(reading, file, cwd);
  readEnvironment(reading, env, cwd);
  readTable(reading, overrides, () => "command line");
  return reading;
}

function finish(reading: Reading): Config {
  const config = assemble(reading);
  applyRules(reading, config);
  missRequired(reading);
  if (reading.problems.length > 0) throw new ConfigError(inOrder(reading.problems));
  fillIn(config, reading);
  return config;
}

/** Sorts problems by the line of the file; those without a line come last. */
function inOrder(problems: string[]): string[] {
  const lineOf = (problem: string): number =>
    Number(/^\S+ line (\d+)\b/.exec(problem)?.[1] ?? Number.POSITIVE_INFINITY);
  return problems.toSorted((one, other) => {
    const [a, b] = [lineOf(one), lineOf(other)];
    return a === b ? 0 : a - b;
  });
}

/** Sets the keys whose default follows from another key. */
function fillIn({ server, smtp, database, data, backup, billing, plans }: Config, { values }: Reading): void {
  server.base_url = server.base_url.replace(/\/$/, "");
  smtp.hostname = (smtp.hostname || machineName()).toLowerCase();
  smtp.domain = (smtp.domain || smtp.hostname).toLowerCase();
  smtp.former_domains = smtp.former_domains.map((domain) => domain.toLowerCase());
  database.url ||= `sqlite:${join(data.dir, "mailwright.db")}`;
  backup.dir ||= join(data.dir, "backups");
  // If plans are not sold, every account has this plan; otherwise it is the largest one sold.
  if (billing.stripe_secret_key !== "" && !values.has("plans.team.credits"))
    plans.team.credits = TEAM_CREDITS;
}

/** Returns the host name if it can be used in a mail address: some machines have one with an underscore. */
function machineName(): string {
  const name = hostname();
  return isHostName(name) ? name : "localhost";
}
