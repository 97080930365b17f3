import { ApiFault } from "./api-faults.ts";

export type Args = Record<string, unknown>;

/** The JSON Schema of an object that holds these members and no others. */
export function closed(
  properties: Record<string, Record<string, unknown>>,
  required: string[],
): Record<string, unknown> {
  return { type: "object", properties, required, additionalProperties: false };
}

/** An argument that is text; empty when it was not given. */
export function textOf(args: Args, name: string): string {
  const value = args[name];
  return typeof value === "string" ? value : "";
}

/** An argument for a part of a URL. Throws ApiFault unless it has the form of one. */
export function idOf(args: Args, name: string, pattern: RegExp): string {
  const value = textOf(args, name);
  if (!pattern.test(value)) throw new ApiFault(`${name} does not look like one. See its description.`);
  return value;
}

export function numberOf(args: Args, name: string): string {
  const value = args[name];
  if (!Number.isSafeInteger(value) || Number(value) < 1)
    throw new ApiFault(`${name} has to be a whole number above 0.`);
  return String(value);
}

/** The folders and the name in a path from the root of a repository; none for the root itself. */
export function pathPartsOf(args: Args, name: string): string[] {
  const path = textOf(args, name).replace(/^\//, "").replace(/\/$/, "");
  return path === "" ? [] : path.split("/");
}
