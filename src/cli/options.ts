import { write as writeTo, writeSync } from "node:fs";
import { Writable } from "node:stream";
import { type Config, type ConfigOverrides, loadConfig } from "../config/config.ts";
import { AppError, codeOf, messageOf } from "../errors.ts";

/** How long to wait before writing again to a full pipe. */
const FULL_PIPE_MS = 5;

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

/** Characters that control a terminal or reorder text; JSON allows them in strings. */
const TERMINAL_CONTROLS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Prints a value as JSON for programs or, line by line, for people. */
export function print(options: CommonOptions, value: unknown, lines: string[]): void {
  printText(`${options.json ? safeJson(value) : lines.join("\n")}\n`);
}

/**
 * Writes a whole text to standard output. Throws AppError when that fails, as with a file on a full disk: what is shown
 * only once would otherwise be lost silently.
 */
export function printText(text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(process.stdout.fd, bytes, at);
    } catch (error) {
      if (codeOf(error) === "EAGAIN") Bun.sleepSync(FULL_PIPE_MS);
      // A reader that closed the pipe early, such as `head`, misses nothing.
      else if (codeOf(error) === "EPIPE") process.exit(1);
      else
        throw new AppError("unavailable", `The output could not be written (${messageOf(error)}).`, {
          fix: "What the command does is done; where it shows a key or a password once, make another one.",
        });
    }
  }
}

/** Returns standard output for a large file, which waits when a pipe's reader is slower. */
export function standardOutput(): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const writeOn = (at: number): void =>
        writeTo(process.stdout.fd, chunk, at, (error, written) => {
          if (codeOf(error) === "EAGAIN") setTimeout(() => writeOn(at), FULL_PIPE_MS);
          else if (error || at + written === chunk.length) done(error);
          else writeOn(at + written);
        });
      writeOn(0);
    },
  });
}

function safeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    TERMINAL_CONTROLS,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
