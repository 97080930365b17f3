import type { TSchema } from "@sinclair/typebox";
import { closestName } from "../lib/closest-name.ts";

/** A member or parameter that the server ignores. */
export interface UnknownMember {
  path: string;
  code: "unknown_member";
  /** The known name that was probably meant. */
  did_you_mean: string | null;
}

export interface Unknown {
  /** The first ones, described. */
  members: UnknownMember[];
  count: number;
}

/** How many unknown members are described; further ones are only counted. */
const MAX_DESCRIBED = 20;
const MAX_NAME_CHARS = 100;
const MIN_SLIP_CHARS = 4;

/** Names that other APIs use for the same thing. */
const ALSO_CALLED = [
  ["name", "label", "title", "filename"],
  ["prompt", "question", "command", "instruction"],
  ["text", "input", "data", "content", "body"],
  ["files", "attachments"],
  ["events", "event_types"],
  ["inbox", "inbox_id"],
  ["active", "enabled"],
  ["key", "secret", "credential"],
];

type Schema = Partial<TSchema> & { anyOf?: Schema[] };

/**
 * Returns the members of a body that its schema does not have, at any depth. Maps whose keys the sender chooses have
 * none.
 */
export function unknownIn(body: unknown, schema: Schema | undefined): Unknown {
  const found: Unknown = { members: [], count: 0 };
  visit(body, schema ?? {}, "body", found);
  return found;
}

/** Returns the query parameters that a route does not have. */
export function unknownParameters(search: string, schema: Schema | undefined): Unknown {
  const found: Unknown = { members: [], count: 0 };
  const known = Object.keys(schema?.["properties"] ?? {});
  for (const name of new Set(new URLSearchParams(search).keys()))
    if (!known.includes(name)) note(found, { path: "query", name, known });
  return found;
}

function visit(value: unknown, schema: Schema, path: string, found: Unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    const { items } = formOf(schema, "array");
    if (items) for (const [index, item] of value.entries()) visit(item, items, `${path}.${index}`, found);
  } else if (Object.getPrototypeOf(value) === Object.prototype) {
    const { properties } = formOf(schema, "object");
    if (properties) visitMembers(value as Record<string, unknown>, properties, path, found);
  }
}

function visitMembers(
  value: Record<string, unknown>,
  properties: Record<string, Schema>,
  path: string,
  found: Unknown,
): void {
  for (const [name, member] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema) visit(member, schema, `${path}.${name}`, found);
    else note(found, { path, name, known: Object.keys(properties) });
  }
}

/** Returns the branch of a schema that has this type, such as that of a nullable value. */
function formOf(schema: Schema, type: "array" | "object"): Schema {
  if (schema["type"] === type) return schema;
  return schema.anyOf?.find((branch) => branch["type"] === type) ?? {};
}

function note(found: Unknown, { path, name, known }: { path: string; name: string; known: string[] }): void {
  found.count += 1;
  if (found.members.length >= MAX_DESCRIBED) return;
  const shown = name.slice(0, MAX_NAME_CHARS).toWellFormed();
  found.members.push({
    path: `${path}.${shown}`,
    code: "unknown_member",
    did_you_mean: meantBy(shown, known) ?? null,
  });
}

function meantBy(name: string, known: string[]): string | undefined {
  const others = ALSO_CALLED.find((names) => names.includes(name.toLowerCase())) ?? [];
  // A shorter name can become nearly any other one by two edits.
  const near = name.length < MIN_SLIP_CHARS ? undefined : closestName(name, known);
  return near ?? known.find((one) => others.includes(one) || isOneOfMany(name, one)) ?? begunBy(name, known);
}

/** Whether names differ by a plural. */
function isOneOfMany(name: string, one: string): boolean {
  return `${name}s` === one || name === `${one}s`;
}

/** The only name of several words that begins with these: `allowlist` for `allowlist_senders`. */
function begunBy(name: string, known: string[]): string | undefined {
  const longer = known.filter((one) => one.startsWith(`${name}_`));
  return longer.length === 1 ? longer[0] : undefined;
}
