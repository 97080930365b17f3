import { resolve } from "node:path";
import { readSmallFile } from "./file.ts";
import { isKey, isNamed } from "./keys.ts";
import type { Key, Named, Node, Section } from "./keys.ts";
import { KEYS, meets, take } from "./load.ts";
import type { Reading } from "./load.ts";
import { SCHEMA } from "./schema.ts";
import { messageOf } from "../errors.ts";
import { closestName } from "../lib/closest-name.ts";

const ENV_PREFIX = "MAILWRIGHT_";
const CONFIG_VARIABLE = "MAILWRIGHT_CONFIG";
const FILE_SUFFIX = "__FILE";

/**
 * Variables of Kubernetes and old Docker links, which define `NAME_SERVICE_HOST`, `NAME_PORT_80_TCP` and the like for
 * every service called NAME.
 */
const INJECTED = /^MAILWRIGHT_(?!\w*__)\w*?(SERVICE_(HOST|PORT)\w*|PORT_\d+_(TCP|UDP)\w*)$/;
const INJECTED_VALUE = /^(tcp|udp):\/\//;

export function readEnvironment(
  reading: Reading,
  env: Record<string, string | undefined>,
  cwd: string,
): void {
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !isSetting(name, value)) continue;
    const is_file = name.endsWith(FILE_SUFFIX);
    const plain = is_file ? name.slice(0, -FILE_SUFFIX.length) : name;
    const found = findKey(plain);
    if (found === undefined) reading.problems.push(`${name}: ${unknownVariable(plain)}`);
    else if (is_file && env[plain] !== undefined)
      reading.problems.push(`${name}: ${plain} is set too; remove one of the two`);
    else if (found.named.every((one) => meets(reading, one.node, { ...one, source: name })))
      readVariable(reading, found, { name, value, is_file, cwd });
  }
}

/** Returns whether a variable is meant for a key, rather than for another program. */
function isSetting(name: string, value: string): boolean {
  if (!name.startsWith(ENV_PREFIX) || name === CONFIG_VARIABLE) return false;
  return !INJECTED.test(name) && !(name.endsWith("_PORT") && INJECTED_VALUE.test(value));
}

interface Found {
  key: Key;
  path: string;
  /** The operator's names in the path. */
  named: { node: Named; path: string; name: string }[];
}

/** Returns the key that a variable sets, if there is one. */
function findKey(variable: string): Found | undefined {
  let node: Node | undefined = SCHEMA;
  let path = "";
  const named: Found["named"] = [];
  for (const part of variable.slice(ENV_PREFIX.length).split("__")) {
    if (node === undefined || isKey(node)) return undefined;
    const name: string = isNamed(node) ? node.nameOf(part) : memberOf(node, part);
    path = path === "" ? name : `${path}.${name}`;
    if (isNamed(node)) named.push({ node, path, name });
    node = isNamed(node) ? node.each : node[name];
  }
  return node !== undefined && isKey(node) ? { key: node, path, named } : undefined;
}

function memberOf(section: Section, part: string): string {
  return Object.keys(section).find((name) => name.toUpperCase() === part) ?? "";
}

function readVariable(
  reading: Reading,
  { key, path }: Found,
  given: { name: string; value: string; is_file: boolean; cwd: string },
): void {
  const { name } = given;
  if (given.is_file && given.value.trim() === "") {
    reading.faulty.add(path);
    reading.problems.push(`${name}: names no file; set it to the path of one, or remove it`);
    return;
  }
  try {
    const text = given.is_file
      ? readSmallFile(resolve(given.cwd, given.value)).replace(/\r?\n$/, "")
      : given.value;
    take(reading, { path, key, value: key.fromText(text), source: name });
  } catch (error) {
    reading.faulty.add(path);
    reading.problems.push(`${name}: the file it names cannot be read (${messageOf(error)})`);
  }
}

function unknownVariable(name: string): string {
  const near = closestName(name, [...KEYS.keys()].map(envName));
  return near === undefined
    ? "no key is set by this variable. `mailwright config example` lists every key; [smtp] listen is MAILWRIGHT_SMTP__LISTEN"
    : `no key is set by this variable. Did you mean ${near}?`;
}

function envName(path: string): string {
  return ENV_PREFIX + path.replaceAll(".", "__").toUpperCase();
}
