import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { readTable } from "./load.ts";
import type { Reading } from "./load.ts";
import { messageOf } from "../errors.ts";
import { MB } from "../lib/sizes.ts";

const MAX_FILE_BYTES = MB;

/** Reads a TOML file into `reading`. `file` is the path as the operator wrote it, relative to `cwd`. */
export function readConfigFile(reading: Reading, file: string, cwd: string): void {
  let text = "";
  try {
    text = readSmallFile(resolve(cwd, file));
    const lines = linesOf(text);
    readTable(reading, parse(text), (path) => `${file}${placeOf(lines, path)}`);
  } catch (error) {
    reading.problems.push(fileProblem(file, text, error));
  }
}

/** Reads a file that holds a few keys or one secret. */
export function readSmallFile(path: string): string {
  if (statSync(path).size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
  return readFileSync(path, "utf8");
}

/**
 * Returns a problem with only the first line of the parser's message: the rest quotes the file, maybe with a secret.
 */
function fileProblem(file: string, text: string, error: unknown): string {
  if ((error as NodeJS.ErrnoException).code === "ENOENT")
    return `There is no file ${file}. Name the right one with --config or MAILWRIGHT_CONFIG`;
  if (!(error instanceof TomlError)) return `${file}: the file cannot be read (${messageOf(error)})`;
  const mend = mendOf(text.split("\n")[error.line - 1] ?? "");
  return `${file} line ${error.line}, column ${error.column}: ${error.message.split("\n")[0]}${mend}`;
}

const DECIMAL_COMMA = /=[ \t]{0,20}\d{1,20},\d{1,20}[ \t]{0,20}(?:#|$)/;

/** Returns what may be missing on a line that TOML refuses. */
function mendOf(line: string): string {
  if (DECIMAL_COMMA.test(line)) return "; a number has a point before its decimals, such as 0.75";
  if (lacksQuotes(line)) return "; put the text after the = in quotes";
  return lacksEnd(line) ? "; a text begins with a quote there and has none at its end" : "";
}

/** Whether a text on a line begins with a quote and goes on to the end of the line. */
function lacksEnd(line: string): boolean {
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at] ?? "";
    if (quote === '"' && sign === "\\") at += 1;
    else if (quote !== "") quote = sign === quote ? "" : quote;
    else if (sign === "#") return false;
    else if (sign === '"' || sign === "'") quote = sign;
  }
  return quote !== "";
}

/** Whether the value on a line that TOML refuses is a text as other formats let it be written. */
function lacksQuotes(line: string): boolean {
  const value = /^[^=#]*=\s*([^\s"'[{#][^#]*)/.exec(line)?.[1]?.trim() ?? "";
  return /[a-z:/@]|\.\d*\./i.test(value) && !/^(?:true|false|yes|no|on|off)$/i.test(value);
}

/** Returns the line on which each key and section first occurs, by dotted path. */
function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  let section = "";
  for (const [index, line] of text.split("\n").entries()) {
    const header = /^\s*\[\[?([^\]]+)\]/.exec(line)?.[1];
    const before = line.slice(0, Math.max(0, line.indexOf("="))).trim();
    const name = /^[\w."'\- \t]+$/.test(before) ? before : undefined;
    if (header !== undefined) section = `${bare(header)}.`;
    const path = header === undefined ? name && `${section}${bare(name)}` : bare(header);
    if (path && !lines.has(path)) lines.set(path, index + 1);
  }
  return lines;
}

function bare(name: string): string {
  return name.replaceAll(/["'\s]/g, "");
}

/** Returns the line of a key or, inside an inline table, of the table. */
function placeOf(lines: Map<string, number>, path: string): string {
  const line = lines.get(bare(path));
  if (line !== undefined) return ` line ${line}`;
  const dot = path.lastIndexOf(".");
  return dot === -1 ? "" : placeOf(lines, path.slice(0, dot));
}
