import { isKey } from "./config-keys.ts";
import type { Key, Section } from "./config-keys.ts";
import { RULES, SCHEMA } from "./config-schema.ts";
import type { Values } from "./config-schema.ts";
import { closestName } from "./lib/closest-name.ts";

/** What was read so far. A source is what a problem starts with: `config.toml line 3` or a variable's name. */
export interface Reading {
  values: Map<string, unknown>;
  sources: Map<string, string>;
  faulty: Set<string>;
  problems: string[];
}

type Table = Record<string, unknown>;

/** Every key by its dotted path, such as `plans.free.credits`. */
export const KEYS = keysOf(SCHEMA);

export function newReading(): Reading {
  return { values: new Map(), sources: new Map(), faulty: new Set(), problems: [] };
}

/** Reads values that come as an object shaped like the configuration; undefined ones count as not given. */
export function readTable(reading: Reading, table: object, sourceOf: (path: string) => string): void {
  const visit = (section: Section, values: Table, prefix: string): void => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      const path = `${prefix}${name}`;
      const node = Object.hasOwn(section, name) ? section[name] : undefined;
      if (node === undefined)
        reading.problems.push(`${sourceOf(path)}: ${unknownKey(section, prefix, name)}`);
      else if (isKey(node)) take(reading, path, value, sourceOf(path));
      else if (isTable(value)) visit(node, value, `${path}.`);
      else
        reading.problems.push(`${sourceOf(path)}: ${path} is a section; write [${path}] and its keys below`);
    }
  };
  visit(SCHEMA, table as Table, "");
}

/** Builds the whole configuration: what was read, and the default of everything else. */
export function assemble(reading: Reading): Values {
  const build = (section: Section, prefix: string): Table =>
    Object.fromEntries(
      Object.entries(section).map(([name, node]) => {
        const path = `${prefix}${name}`;
        if (!isKey(node)) return [name, build(node, `${path}.`)];
        return [name, structuredClone(reading.values.has(path) ? reading.values.get(path) : node.default)];
      }),
    );
  return build(SCHEMA, "") as Values;
}

/** Adds the problems that only show when several keys are seen together. */
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
    else for (const [path, key] of keysOf(node, `${prefix}${name}.`)) keys.set(path, key);
  }
  return keys;
}

/** Keeps a value if it is right; else it is a problem of its source. */
export function take(reading: Reading, path: string, value: unknown, source: string): void {
  const key = KEYS.get(path);
  const fault = key?.fault(value);
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
  const near = closestName(name, names);
  const hint = near === undefined ? `Known there: ${names.join(", ")}` : `Did you mean ${prefix}${near}?`;
  return `${prefix}${name} is not a known ${prefix === "" ? "section" : "key"}. ${hint}`;
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
