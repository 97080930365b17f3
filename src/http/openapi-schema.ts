import type { TSchema } from "@sinclair/typebox";

/** A schema, or any other part of the document, as plain JSON. */
export type Json = Record<string, unknown>;

/** Returns a TypeBox schema as JSON Schema. Parts with an `$id` are moved to `schemas` under that name. */
export function jsonSchemaOf(schema: TSchema, schemas: Record<string, Json>): Json {
  return cleaned(JSON.parse(JSON.stringify(schema)) as Json, schemas);
}

/** Keywords whose value holds schemas, and in what form. */
const DEEPER = {
  properties: "map",
  additionalProperties: "one",
  anyOf: "list",
  allOf: "list",
  items: "one",
} as const;

/** The pattern by which TypeBox writes a map with any keys. */
const ANY_KEY = "^(.*)$";

function cleaned(given: Json, schemas: Record<string, Json>): Json {
  const { $id: id, nullable: _nullable, title: _title, ...rest } = given;
  // Elysia sets additionalProperties to false on body schemas that it uses, although unknown members are accepted.
  if (typeof rest["additionalProperties"] === "boolean") delete rest["additionalProperties"];
  const schema = withOuterWords(withoutTextForm(withPlainMap(rest)));
  if (schema["format"] === "binary") return { type: "string", format: "binary" };
  const inner = withPlainChoice(
    Object.fromEntries(
      Object.entries(schema).map(([name, value]) => [
        name,
        name in DEEPER ? deeper(DEEPER[name as keyof typeof DEEPER], value, schemas) : value,
      ]),
    ),
  );
  if (typeof id !== "string") return inner;
  if (id in schemas && !Bun.deepEquals(schemas[id], inner)) throw new Error(`Two schemas are called ${id}.`);
  schemas[id] = inner;
  return { $ref: `#/components/schemas/${id}` };
}

function deeper(shape: "map" | "list" | "one", value: unknown, schemas: Record<string, Json>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (shape === "one") return cleaned(value as Json, schemas);
  if (shape === "list") return (value as Json[]).map((one) => cleaned(one, schemas));
  const members = Object.entries(value as Record<string, Json>);
  return Object.fromEntries(members.map(([key, one]) => [key, cleaned(one, schemas)]));
}

/** Removes the string branch that Elysia adds to numbers and booleans in a query. */
function withoutTextForm({ anyOf, ...schema }: Json): Json {
  const branches = anyOf as Json[] | undefined;
  const meant = branches?.find((branch) => TEXT_FORMS.has(String(branch["type"])));
  if (!meant || !branches?.some((branch) => TEXT_FORMS.has(String(branch["format"]))))
    return branches ? { ...schema, anyOf } : schema;
  return { ...schema, ...meant };
}

const TEXT_FORMS = new Set(["integer", "number", "numeric", "boolean"]);

/** Moves the description of a nullable value out of its anyOf; its example may be null too. */
function withOuterWords({ anyOf, ...schema }: Json): Json {
  const [first, ...others] = (anyOf ?? []) as Json[];
  if (!first || "$id" in first || others.at(-1)?.["type"] !== "null")
    return anyOf ? { ...schema, anyOf } : schema;
  const { description, examples, ...inner } = first;
  const words = Object.entries({ description, examples }).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(words), ...schema, anyOf: [inner, ...others] };
}

function withPlainMap({ patternProperties, ...schema }: Json): Json {
  const values = (patternProperties as Json | undefined)?.[ANY_KEY];
  if (values !== undefined) return { ...schema, additionalProperties: values };
  return patternProperties === undefined ? schema : { ...schema, patternProperties };
}

function withPlainChoice({ anyOf, ...schema }: Json): Json {
  const branches = anyOf as Json[] | undefined;
  if (branches?.every((branch) => typeof branch["const"] === "string"))
    return { ...schema, type: "string", enum: branches.map((branch) => branch["const"]) };
  return branches ? { ...schema, anyOf } : schema;
}
