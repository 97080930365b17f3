import { AppError } from "../errors.ts";
import { hasMoreParts, isNestedDeeper } from "../lib/json-depth.ts";

/** Limit of nesting: far above any valid body, far below what recursive validation can handle. */
const MAX_DEPTH = 32;
/**
 * Limit of members and entries: listing the faults of a megabyte of misplaced numbers would block everybody for a
 * second.
 */
const MAX_PARTS = 20_000;

/** Parses a JSON object. Throws `validation_error`. */
export function readJson(text: string): Record<string, unknown> {
  if (hasMoreParts(text, MAX_PARTS)) throw badJson("The body has far too many members and entries.");
  if (isNestedDeeper(text, MAX_DEPTH))
    throw badJson(`The body is nested more than ${MAX_DEPTH} levels deep.`);
  const value = parseJson(text);
  dropShadowing(value);
  // Elysia would treat an array or a bare value as an empty object.
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw badJson("The body must be a JSON object.");
}

/** Returns the error (422) for a body that is wrong as a whole. */
export function badJson(message: string): AppError {
  return new AppError("validation_error", message, {
    faults: [{ path: "body", code: "json_invalid", message }],
  });
}

/**
 * Removes members named like those every object inherits (`toString`, `__proto__`): the validation would read the
 * inherited ones and crash.
 */
function dropShadowing(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (name in Object.prototype) Reflect.deleteProperty(value, name);
    else dropShadowing(member);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badJson("The body is not valid JSON.");
  }
}
