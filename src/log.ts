import pino from "pino";

export type Log = pino.Logger;

/** Names whose values never reach a log line, wherever they stand in the logged object. */
const SECRET_NAMES = [
  "credential",
  "api_key",
  "password",
  "secret",
  "token",
  "authorization",
  "master_key",
  "key",
];

const LEVEL_WORDS: Record<number, string> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** Lines on standard output: `json` for machines, `text` for people. `level` is a pino level or `silent`. */
export function createLog(options: { level: string; format: "text" | "json" }): Log {
  const redact = { paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" };
  const base = { level: options.level, base: null, redact };
  return options.format === "json"
    ? pino(base)
    : pino(base, { write: (line) => void process.stdout.write(asText(line)) });
}

function asText(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as { level: number; time: number; msg?: string };
  const words = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return (
    [new Date(time).toISOString(), (LEVEL_WORDS[level] ?? "?").padEnd(5), msg ?? "", ...words].join(" ") +
    "\n"
  );
}
