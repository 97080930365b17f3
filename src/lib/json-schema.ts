import type { AnySchema, ValidateFunction } from "ajv";

/** Returns in a few words what in a value does not fit the schema; null if all fits. */
export type SchemaCheck = (value: unknown) => string | null;

const MAX_FAULTS_SHOWN = 3;
const known = new WeakMap<object, Promise<SchemaCheck>>();

/**
 * Returns a check for a JSON Schema that an outside server may have written. Ignores keywords that could take unbounded
 * time, such as patterns and unique items. A schema that is invalid, or that its references make huge or endless,
 * accepts everything.
 */
export function checkBy(schema: Record<string, unknown>): Promise<SchemaCheck> {
  const cached = known.get(schema);
  if (cached !== undefined) return cached;
  const check = compile(schema);
  known.set(schema, check);
  return check;
}

async function compile(schema: Record<string, unknown>): Promise<SchemaCheck> {
  try {
    const { validate, nodes } = await validatorOf(schema);
    return (value) =>
      isTooMuch(value, nodes) || validate(value) === true ? null : faultsOf(validate, "the arguments");
  } catch {
    // A schema with an unknown dialect or a broken reference is not the caller's fault; its server checks the value
    // itself.
    return () => null;
  }
}

/**
 * Returns a check for a JSON Schema all of which counts, as its author relies on what the check says. Throws where it cannot be
 * checked as a whole, and says why.
 */
export async function wholeCheckBy(schema: Record<string, unknown>): Promise<SchemaCheck> {
  const { validate, nodes, aside } = await validatorOf(schema);
  const [word] = aside;
  if (word !== undefined) throw new Error(`\`${word}\` is not checked here`);
  return (value) => {
    if (isTooMuch(value, nodes)) return "it is too large to be checked";
    return validate(value) === true ? null : faultsOf(validate, "the answer");
  };
}

async function validatorOf(schema: Record<string, unknown>) {
  // Loaded at first use: many servers never see a tool.
  const { default: Ajv } = await import("ajv/dist/2020.js");
  const ajv = new Ajv({
    strict: false,
    validateFormats: false,
    allErrors: false,
    logger: false,
    addUsedSchema: false,
    code: { optimize: false },
    meta: false,
    validateSchema: false,
  });
  const { plain, nodes, aside } = plainSchema(schema);
  return { validate: ajv.compile(plain as AnySchema), nodes, aside };
}

/**
 * Keywords that are removed: checking them could take unbounded time, or they would demand more than their author meant
 * once others are removed.
 */
const LEFT_ASIDE = new Set([
  "not",
  "if",
  "then",
  "else",
  "pattern",
  "patternProperties",
  "uniqueItems",
  "$async",
  "$schema",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$dynamicRef",
  "$recursiveRef",
  "$defs",
  "definitions",
]);
/** Those of them that say what a value may be. */
const UNCHECKED =
  /^(?:not|if|then|else|pattern|patternProperties|uniqueItems|\$dynamicRef|\$recursiveRef|oneOf)$/;
/** Keywords removed from an object schema with `patternProperties`. */
const LEFT_OPEN = new Set([...LEFT_ASIDE, "additionalProperties", "unevaluatedProperties"]);
const VALUES = /^(const|enum|default|examples|required)$/;
const MAPS = /^(properties|dependentSchemas)$/;
/**
 * Limit of the nodes of a schema with its references resolved, each counted wherever it is used: a few references can
 * stand for millions of nodes.
 */
const MAX_NODES = 600;
const MAX_DEPTH = 64;
/**
 * Limit of schema nodes times parts of the value: some tens of milliseconds. Beyond it the value is accepted unchecked.
 */
const MAX_WORK = 200_000;
const CHARS_TO_A_PART = 100;

/** Returns whether a check may take long: every node of the schema may look at every part of the value. */
function isTooMuch(value: unknown, nodes: number): boolean {
  const most = MAX_WORK / nodes;
  return workOf(value, most) > most;
}

/** Returns the number of parts of a value: values, names, and text by its length. Stops a little beyond `most`. */
function workOf(value: unknown, most: number): number {
  if (typeof value === "string") return 1 + value.length / CHARS_TO_A_PART;
  if (typeof value !== "object" || value === null) return 1;
  let work = 1;
  for (const [name, part] of Object.entries(value)) {
    work += 1 + name.length / CHARS_TO_A_PART + workOf(part, most);
    if (work > most) break;
  }
  return work;
}

/**
 * Returns a schema with its references resolved and the ignored keywords removed, its number of nodes, and which keywords
 * are not checked as they are meant. Throws where it is too large or a reference is broken.
 */
function plainSchema(root: Record<string, unknown>) {
  let nodes = 0;
  const aside = new Set<string>();
  const count = (some: number, depth: number): void => {
    nodes += some;
    if (nodes > MAX_NODES || depth > MAX_DEPTH) throw new Error("The schema is too large");
  };
  const plain = (node: unknown, depth: number, is_map = false): unknown => {
    count(1, depth);
    if (Array.isArray(node)) return node.map((item) => plain(item, depth + 1));
    if (typeof node !== "object" || node === null) return node;
    // Under `properties` the members are property names, not keywords.
    if (is_map) return mapped(node, (_name, value) => plain(value, depth + 1), new Set());
    for (const name of Object.keys(node)) if (UNCHECKED.test(name)) aside.add(name);
    const { $ref, oneOf, ...rest } = node as { $ref?: unknown; oneOf?: unknown };
    const change = (name: string, value: unknown): unknown => {
      if (!VALUES.test(name)) return plain(value, depth + 1, MAPS.test(name));
      count(workOf(value, MAX_NODES), depth);
      return value;
    };
    const parts = [mapped(rest, change, "patternProperties" in node ? LEFT_OPEN : LEFT_ASIDE)];
    if (oneOf !== undefined) parts.push({ anyOf: plain(oneOf, depth + 1) });
    if (typeof $ref === "string") parts.push({ allOf: [plain(resolve(root, $ref), depth + 1)] });
    return parts.length === 1 ? parts[0] : { allOf: parts };
  };
  const all = plain(root, 0);
  return { plain: all, nodes, aside };
}

function mapped(
  node: object,
  change: (name: string, value: unknown) => unknown,
  without: Set<string> = LEFT_ASIDE,
): object {
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => !without.has(name))
      .map(([name, value]) => [name, change(name, value)]),
  );
}

/** Returns the part of a schema that a reference within it points to (RFC 6901). */
function resolve(root: unknown, ref: string): unknown {
  if (!ref.startsWith("#")) throw new Error("The reference leads elsewhere");
  const steps = decodeURIComponent(ref.slice(1)).split("/").slice(1);
  return steps.reduce<unknown>((node, step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, name))
      throw new Error("The reference leads nowhere");
    return (node as Record<string, unknown>)[name];
  }, root);
}

function faultsOf({ errors }: ValidateFunction, what: string): string {
  const faults = (errors ?? []).slice(0, MAX_FAULTS_SHOWN);
  return faults
    .map(({ instancePath, message = "does not fit", params }) => {
      const extra = (params as { additionalProperty?: string }).additionalProperty;
      return `${instancePath || what} ${extra === undefined ? message : `may not have "${extra}"`}`;
    })
    .join("; ");
}
