import { isKey, isNamed } from "./keys.ts";
import type { Key, Named, Node, Section } from "./keys.ts";
import { RULES } from "./rules.ts";
import { SCHEMA } from "./schema.ts";
import type { Values } from "./schema.ts";
import { closestName } from "../lib/closest-name.ts";

/**
 * The configuration as read so far. A source is the beginning of a problem's sentence: `config.toml line 3` or a
 * variable's name.
 */
export interface Reading {
  /** The sections with operator-chosen names, with the source of each. */
  named: Map<string, string>;
  values: Map<string, unknown>;
  sources: Map<string, string>;
  faulty: Set<string>;
  problems: string[];
}

type Table = Record<string, unknown>;

/** Every key with a fixed name by its dotted path, such as `plans.free.credits`. */
export const KEYS = keysOf(SCHEMA);

export function newReading(): Reading {
  return { named: new Map(), values: new Map(), sources: new Map(), faulty: new Set(), problems: [] };
}

/** Reads values from an object shaped like the configuration; undefined ones count as absent. */
export function readTable(reading: Reading, table: object, sourceOf: (path: string) => string): void {
  const visit = (section: Section, values: Table, prefix: string): void => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      const path = `${prefix}${name}`;
      const node = Object.hasOwn(section, name) ? section[name] : undefined;
      if (node === undefined)
        reading.problems.push(`${sourceOf(path)}: ${unknownKey(section, prefix, name)}`);
      else read(node, value, path);
    }
  };
  const read = (node: Node, value: unknown, path: string): void => {
    if (isKey(node)) take(reading, { path, key: node, value, source: sourceOf(path) });
    else if (!isTable(value)) {
      reading.faulty.add(path);
      reading.problems.push(`${sourceOf(path)}: ${path} is a section; write [${path}] and its keys below`);
    } else if (isNamed(node)) visitNamed(node, value, path);
    else visit(node, value, `${path}.`);
  };
  const visitNamed = (node: Named, values: Table, path: string): void => {
    for (const [name, value] of Object.entries(values)) {
      const inner = `${path}.${name}`;
      if (meets(reading, node, { path: inner, name, source: sourceOf(inner) })) read(node.each, value, inner);
    }
  };
  visit(SCHEMA, table as Table, "");
}

/** Returns whether an operator-chosen name is valid, and then registers it. */
export function meets(
  reading: Reading,
  { name: form }: Named,
  given: { path: string; name: string; source: string },
): boolean {
  const { path, name, source } = given;
  if (form.matches(name)) {
    if (!reading.named.has(path)) reading.named.set(path, source);
    return true;
  }
  reading.problems.push(`${source}: ${path} must be ${form.words}, not ${JSON.stringify(name.slice(0, 80))}`);
  return false;
}

/** Builds the complete configuration from what was read and the defaults. */
export function assemble(reading: Reading): Values {
  const build = (node: Node, path: string): unknown => {
    if (isKey(node)) {
      const value = reading.values.has(path) ? reading.values.get(path) : node.default;
      return typeof value === "object" ? structuredClone(value) : value;
    }
    const prefix = path === "" ? "" : `${path}.`;
    const members: [string, Node][] = isNamed(node)
      ? namesIn(reading, path).map((name) => [name, node.each])
      : Object.entries(node);
    return Object.fromEntries(members.map(([name, inner]) => [name, build(inner, `${prefix}${name}`)]));
  };
  return build(SCHEMA, "") as Values;
}

/** Returns the operator's names in a section. */
function namesIn(reading: Reading, path: string): string[] {
  const depth = path.split(".").length + 1;
  return [...reading.named.keys()]
    .filter((inner) => inner.startsWith(`${path}.`) && inner.split(".").length === depth)
    .map((inner) => inner.slice(path.length + 1));
}

/** Adds a problem for every named section that lacks a required key. */
export function missRequired(reading: Reading): void {
  for (const [path, source] of reading.named) {
    const node = nodeAt(path);
    if (node === undefined || isKey(node) || isNamed(node) || reading.faulty.has(path)) continue;
    for (const [name, key] of Object.entries(node)) {
      const inner = `${path}.${name}`;
      const is_there = (reading.values.get(inner) ?? "") !== "" || reading.faulty.has(inner);
      if (isKey(key) && key.required && !is_there)
        reading.problems.push(`${source}: ${path} needs ${name}, which is not given`);
    }
  }
}

/** Returns the node at a dotted path, also below operator-chosen names. */
function nodeAt(path: string): Node | undefined {
  return path.split(".").reduce<Node | undefined>((node, name) => {
    if (node === undefined || isKey(node)) return undefined;
    if (isNamed(node)) return node.each;
    return Object.hasOwn(node, name) ? node[name] : undefined;
  }, SCHEMA);
}

/** Adds the problems of keys that do not fit together. */
export function applyRules(reading: Reading, config: Values): void {
  for (const rule of RULES) {
    if (reading.faulty.has(rule.path) || reading.faulty.has(rule.needs) || !rule.isBroken(config)) continue;
    const source = reading.sources.get(rule.path) ?? reading.sources.get(rule.needs) ?? "defaults";
    reading.problems.push(`${source}: ${rule.path} ${rule.words}`);
  }
}

function keysOf(section: Section, prefix = ""): Map<string, Key> {
  const keys = new Map<string, Key>();
  for (const [name, node] of Object.entries(section)) {
    if (isKey(node)) keys.set(`${prefix}${name}`, node);
    else if (!isNamed(node)) for (const [path, key] of keysOf(node, `${prefix}${name}.`)) keys.set(path, key);
  }
  return keys;
}

/** Stores a value if it is valid; otherwise adds a problem of its source. */
export function take(
  reading: Reading,
  given: { path: string; key: Key; value: unknown; source: string },
): void {
  const { path, key, value, source } = given;
  const fault = key.fault(value);
  reading.sources.set(path, source);
  if (fault === undefined) {
    reading.values.set(path, value);
    return;
  }
  reading.faulty.add(path);
  reading.problems.push(`${source}: ${path} ${fault}`);
}

function unknownKey(section: Section, prefix: string, name: string): string {
  const names = Object.keys(section);
  const near = names.find((known) => known.startsWith(`${name}_`)) ?? closestName(name, names);
  const hint = near === undefined ? `Known there: ${names.join(", ")}` : `Did you mean ${prefix}${near}?`;
  return `${prefix}${name} is not a known ${prefix === "" ? "section" : "key"}. ${hint}`;
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
