import type { AnySchema, ValidateFunction } from "ajv";

/** Says in a few words what of a value does not fit the schema; null if all does. */
export type SchemaCheck = (value: unknown) => string | null;

const MAX_FAULTS_SHOWN = 3;
const known = new WeakMap<object, Promise<SchemaCheck>>();

/**
 * A check by a JSON Schema that somebody else may have written. What could take for ever is left aside: patterns
 * and unique items. Of a schema that makes no sense, or that its references make huge or endless, nothing is asked.
 */
export function checkBy(schema: Record<string, unknown>): Promise<SchemaCheck> {
  const cached = known.get(schema);
  if (cached !== undefined) return cached;
  const check = compile(schema);
  known.set(schema, check);
  return check;
}

async function compile(schema: Record<string, unknown>): Promise<SchemaCheck> {
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
  try {
    const { plain, nodes } = plainSchema(schema);
    const validate = ajv.compile(plain as AnySchema);
    return (value) => (isTooMuch(value, nodes) || validate(value) === true ? null : faultsOf(validate));
  } catch {
    // Not a fault of the caller: a schema with an unknown dialect or a lost reference; its server checks for itself.
    return () => null;
  }
}

/** Keywords that are left out: checking them could take for ever, or would ask for more than their author did once others are gone. */
const LEFT_ASIDE = new Set([
  "not",
  "if",
  "then",
  "else",
  "pattern",
  "patternProperties",
  "uniqueItems",
  "$schema",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$dynamicRef",
  "$recursiveRef",
  "$defs",
  "definitions",
]);
/** Keywords that are left out of an object whose properties a pattern names. */
const LEFT_OPEN = new Set([...LEFT_ASIDE, "additionalProperties", "unevaluatedProperties"]);
const VALUES = /^(const|enum|default|examples|required)$/;
const MAPS = /^(properties|dependentSchemas)$/;
/**
 * Nodes of a schema with what its references stand for, each counted wherever it is: a few of them can stand for
 * millions.
 */
const MAX_NODES = 600;
const MAX_DEPTH = 64;
/** Nodes of the schema times parts of the value: some tens of milliseconds. Beyond it nothing is asked. */
const MAX_WORK = 200_000;
const CHARS_TO_A_PART = 100;

/** Whether a check may take long: each part of the value may be asked about by each node of the schema. */
function isTooMuch(value: unknown, nodes: number): boolean {
  const most = MAX_WORK / nodes;
  return workOf(value, most) > most;
}

/** Counts what a check would look at: values, names, and the characters of texts; no further than a little over `most`. */
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
 * Returns a schema without its references and the keywords that are left out, and its number of nodes. Throws where that
 * cannot be made.
 */
function plainSchema(root: Record<string, unknown>): { plain: unknown; nodes: number } {
  let nodes = 0;
  const count = (some: number, depth: number): void => {
    nodes += some;
    if (nodes > MAX_NODES || depth > MAX_DEPTH) throw new Error("The schema is too large");
  };
  const plain = (node: unknown, depth: number, isMap = false): unknown => {
    count(1, depth);
    if (Array.isArray(node)) return node.map((item) => plain(item, depth + 1));
    if (typeof node !== "object" || node === null) return node;
    // Under `properties` these are names like any others.
    if (isMap) return mapped(node, (_name, value) => plain(value, depth + 1), new Set());
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
  return { plain: plain(root, 0), nodes };
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

function faultsOf({ errors }: ValidateFunction): string {
  const faults = (errors ?? []).slice(0, MAX_FAULTS_SHOWN);
  return faults
    .map(({ instancePath, message = "does not fit", params }) => {
      const extra = (params as { additionalProperty?: string }).additionalProperty;
      return `${instancePath || "the arguments"} ${message}${extra === undefined ? "" : ` (${extra})`}`;
    })
    .join("; ");
}
