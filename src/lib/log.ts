import { AsyncLocalStorage } from "node:async_hooks";
import pino from "pino";
import { UNSHOWN } from "./one-line.ts";

/** pino's logger without `child`, whose fields would not be searched for secrets. */
export type Log = pino.BaseLogger & Pick<pino.Logger, "isLevelEnabled">;

/** Member names whose values are never logged, wherever they are in the logged object. */
const SECRET_NAMES = new Set([
  "credential",
  "api_key",
  "password",
  "secret",
  "token",
  "authorization",
  "master_key",
  "key",
]);

const MAX_CAUSES = 3;
/** Logged objects are searched for secrets to this depth; deeper members are left out. */
const MAX_DEPTH = 5;

const LEVEL_WORDS: Record<number, string> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

const about = new AsyncLocalStorage<Record<string, unknown>>();

/** Runs `work` with fields that every log line written meanwhile has, in functions that it calls as well. */
export function withLogFields<T>(fields: Record<string, unknown>, work: () => T): T {
  return about.run({ ...about.getStore(), ...fields }, work);
}

/** Adds a field to every later log line of the current `withLogFields`. */
export function addLogField(name: string, value: unknown): void {
  const fields = about.getStore();
  if (fields) fields[name] = value;
}

/** Runs work without the current log fields, such as the next job after one that ends. */
export function withoutLogFields<T>(work: () => T): T {
  return about.exit(work);
}

/** Returns `work` bound to the current log fields, for calling it later. */
export function keepLogFields<A, T>(work: (given: A) => T): (given: A) => T {
  const fields = about.getStore();
  return fields === undefined ? work : (given) => about.run(fields, () => work(given));
}

/**
 * Opens a log on standard output: `json` for machines, `text` for people. `level` is a pino level or `silent`. `aside`
 * writes text to standard error instead, for a command whose output is data.
 */
export function createLog(options: { level: string; format: "text" | "json"; aside?: boolean }): Log {
  const mixin = (): object => ({ ...about.getStore() });
  const serializers = { err: viewError };
  // pino's own `redact` with wildcards takes longer than the rest of a line.
  const formatters = { log: withoutSecrets };
  const base = { level: options.level, base: null, mixin, formatters, serializers };
  const out = options.aside === true ? process.stderr : process.stdout;
  return options.format === "json"
    ? pino(base)
    : pino(base, { write: (line) => void out.write(asText(line)) });
}

function withoutSecrets(fields: object, depth = 0): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields) as [string, unknown][])
    shown[name] = SECRET_NAMES.has(name) && value !== undefined ? "[redacted]" : shownValue(value, depth);
  return shown;
}

function shownValue(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return viewError(value);
  if (depth >= MAX_DEPTH) return "[too deep]";
  if (Array.isArray(value)) return value.map((member) => shownValue(member, depth + 1));
  // As JSON would show it: a Date, a URL, Headers.
  if ("toJSON" in value && typeof value.toJSON === "function") return shownValue(value.toJSON(), depth + 1);
  return withoutSecrets(value, depth + 1);
}

/**
 * Returns the members of an error that are logged. Others are left out, because libraries put whole requests with their
 * headers into them.
 */
function viewError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === "string" ? withoutPasswords(error) : error;
  const { name, message, stack = "", cause } = error;
  const code = "code" in error ? { code: error.code } : {};
  const deeper = cause === undefined || depth >= MAX_CAUSES ? {} : { cause: viewError(cause, depth + 1) };
  return {
    type: name,
    message: withoutPasswords(message),
    ...code,
    stack: withoutPasswords(stack),
    ...deeper,
  };
}

/** Takes passwords out of URLs, such as that of a relay. */
function withoutPasswords(text: string): string {
  return text.replaceAll(/(\w:\/\/[^\s/:@]*:)[^\s/@]+@/g, "$1[redacted]@");
}

function asText(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as { level: number; time: number; msg?: string };
  const words = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const said = [new Date(time).toISOString(), (LEVEL_WORDS[level] ?? "?").padEnd(5), msg ?? "", ...words];
  return `${said.join(" ").replaceAll(UNSHOWN, escaped)}\n`;
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
