import { AppError } from "../errors.ts";
import { hasMoreParts, isNestedDeeper } from "../lib/json-depth.ts";

/** Far more than any endpoint means, far less than what the validation could walk down. */
const MAX_DEPTH = 32;
/** Likewise: a megabyte of numbers in the wrong place holds up everybody for a second while its faults are listed. */
const MAX_PARTS = 20_000;

/** The JSON object that a text is. Throws `validation_error`. */
export function readJson(text: string): Record<string, unknown> {
  if (hasMoreParts(text, MAX_PARTS)) throw badJson("The body has far too many members and entries.");
  if (isNestedDeeper(text, MAX_DEPTH))
    throw badJson(`The body is nested more than ${MAX_DEPTH} levels deep.`);
  const value = parseJson(text);
  dropShadowing(value);
  // Elysia would take a list or a bare value for an empty object.
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw badJson("The body must be a JSON object.");
}

/** A 422 about the body as a whole. */
export function badJson(message: string): AppError {
  return new AppError("validation_error", message, {
    faults: [{ path: "body", code: "json_invalid", message }],
  });
}

/**
 * Takes out members that are called as something every object has (`toString`, `__proto__`): validation takes
 * them for that, and falls over them.
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
