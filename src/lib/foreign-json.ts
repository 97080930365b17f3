import { parseForeign } from "./json-depth.ts";

/** Returns a member of an object that came from outside; undefined where the value is no object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** Returns the value of a JSON text; undefined where it is not JSON, or exceeds the limits of `parseForeign`. */
export function parseJson(text: string): unknown {
  try {
    return parseForeign(text);
  } catch {
    return undefined;
  }
}
