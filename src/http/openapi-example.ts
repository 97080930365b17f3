import type { Json } from "./openapi-schema.ts";

const BY_FORMAT: Record<string, string> = {
  uuid: "0198c0ff-ee00-7000-8000-00000000cafe",
  email: "ada@example.com",
  uri: "https://example.com/",
  "date-time": "2026-01-15T12:00:00Z",
};

/** Returns a value that fits a schema of the document, made from the examples in its parts. */
export function exampleOf(schema: Json, schemas: Record<string, Json>): unknown {
  const { examples, example, default: initial, enum: choices, anyOf } = schema as ExampleSource;
  if (schema["$ref"] !== undefined) return exampleOf(schemas[nameOf(schema["$ref"])] ?? {}, schemas);
  if (examples?.[0] !== undefined) return examples[0];
  if (example !== undefined) return example;
  if ("const" in schema) return schema["const"];
  if (initial !== undefined) return initial;
  if (choices) return choices[0];
  if (anyOf) return exampleOf(anyOf[0] ?? {}, schemas);
  return exampleOfType(schema, schemas);
}

/** Like `exampleOf`, for a request body: optional members without an example of their own are left out. */
export function bodyExampleOf(schema: Json, schemas: Record<string, Json>): unknown {
  const required = new Set(schema["required"] as string[] | undefined);
  const members = Object.entries((schema["properties"] ?? {}) as Record<string, Json>);
  const told = members.filter(([name, part]) => required.has(name) || "examples" in part);
  return exampleOf({ ...schema, properties: Object.fromEntries(told) }, schemas);
}

interface ExampleSource {
  examples?: unknown[];
  example?: unknown;
  default?: unknown;
  enum?: unknown[];
  anyOf?: Json[];
}

function exampleOfType(schema: Json, schemas: Record<string, Json>): unknown {
  switch (schema["type"]) {
    case "object":
      return Object.fromEntries(
        Object.entries((schema["properties"] ?? {}) as Record<string, Json>).map(([name, part]) => [
          name,
          exampleOf(part, schemas),
        ]),
      );
    case "array":
      return [exampleOf((schema["items"] ?? {}) as Json, schemas)];
    case "string":
      return BY_FORMAT[String(schema["format"])] ?? "text".padEnd(Number(schema["minLength"] ?? 0), "x");
    case "integer":
    case "number":
      return schema["minimum"] ?? 0;
    case "boolean":
      return true;
    default:
      return null;
  }
}

function nameOf(reference: unknown): string {
  return String(reference).split("/").at(-1) ?? "";
}
