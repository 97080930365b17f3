import type { AnySchema, ValidateFunction } from "ajv";

/** Says what does not fit, in a few words; null if all does. */
export type SchemaCheck = (value: unknown) => string | null;

const MAX_FAULTS_SHOWN = 3;
const known = new WeakMap<object, Promise<SchemaCheck>>();

/**
 * A check by a JSON Schema that somebody else may have written. Its patterns are left aside, because matching one can
 * take for ever; of a schema that makes no sense nothing is asked.
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
    meta: false,
    validateSchema: false,
  });
  try {
    const validate = ajv.compile(withoutPatterns(schema) as AnySchema);
    return (value) => (validate(value) === true ? null : faultsOf(validate));
  } catch {
    // Not a fault of the caller: a schema with an unknown dialect or a lost reference; its server checks for itself.
    return () => null;
  }
}

const PATTERNS = new Set(["pattern", "patternProperties", "$schema", "$id"]);

/** Under `properties` these are names like any others. */
function withoutPatterns(node: unknown, isMap = false): unknown {
  if (Array.isArray(node)) return node.map((item) => withoutPatterns(item));
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => isMap || !PATTERNS.has(name))
      .map(([name, value]) => [
        name,
        !isMap && (name === "const" || name === "enum" || name === "default")
          ? value
          : withoutPatterns(value, !isMap && /^(properties|\$defs|definitions|dependentSchemas)$/.test(name)),
      ]),
  );
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
