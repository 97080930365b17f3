import { resolve } from "node:path";
import { readSmallFile } from "./config-file.ts";
import { KEYS, take } from "./config-load.ts";
import type { Reading } from "./config-load.ts";
import { messageOf } from "./errors.ts";
import { closestName } from "./lib/closest-name.ts";

const ENV_PREFIX = "MAILWRIGHT_";
const CONFIG_VARIABLE = "MAILWRIGHT_CONFIG";
const FILE_SUFFIX = "__FILE";

/** Kubernetes and old Docker links put `NAME_SERVICE_HOST`, `NAME_PORT_80_TCP` and the like beside every service called NAME. */
const INJECTED = /^MAILWRIGHT_(?!\w*__)\w*?(SERVICE_(HOST|PORT)\w*|PORT_\d+_(TCP|UDP)\w*)$/;
const INJECTED_VALUE = /^(tcp|udp):\/\//;

export function readEnvironment(
  reading: Reading,
  env: Record<string, string | undefined>,
  cwd: string,
): void {
  const names = new Map([...KEYS.keys()].map((path) => [envName(path), path]));
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(ENV_PREFIX) || name === CONFIG_VARIABLE || value === undefined) continue;
    if (INJECTED.test(name) || (name.endsWith("_PORT") && INJECTED_VALUE.test(value))) continue;
    const isFile = name.endsWith(FILE_SUFFIX);
    const plain = isFile ? name.slice(0, -FILE_SUFFIX.length) : name;
    const path = names.get(plain);
    if (path === undefined) reading.problems.push(`${name}: ${unknownVariable(plain, [...names.keys()])}`);
    else if (isFile && env[plain] !== undefined)
      reading.problems.push(`${name}: ${plain} is set too; remove one of the two`);
    else readVariable(reading, { name, path, value, isFile, cwd });
  }
}

function readVariable(
  reading: Reading,
  given: { name: string; path: string; value: string; isFile: boolean; cwd: string },
): void {
  const { name, path } = given;
  try {
    const text = given.isFile
      ? readSmallFile(resolve(given.cwd, given.value)).replace(/\r?\n$/, "")
      : given.value;
    take(reading, path, KEYS.get(path)?.fromText(text), name);
  } catch (error) {
    reading.faulty.add(path);
    reading.problems.push(`${name}: the file it names cannot be read (${messageOf(error)})`);
  }
}

function unknownVariable(name: string, names: string[]): string {
  const near = closestName(name, names);
  return near === undefined
    ? "no key is set by this variable. `mailwright config example` lists every key; [smtp] listen is MAILWRIGHT_SMTP__LISTEN"
    : `no key is set by this variable. Did you mean ${near}?`;
}

function envName(path: string): string {
  return ENV_PREFIX + path.replaceAll(".", "__").toUpperCase();
}
