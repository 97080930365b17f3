import fc from "fast-check";
import type { Json } from "../../src/http/openapi-schema.ts";

const NAMES_OF_OBJECTS = ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "length"];

/** Texts that have broken programs before. */
const oddText = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "\u{0}",
    "\u{d800}",
    "\u{202e}abc",
    "\u{feff}",
    "👩‍👩‍👧‍👦",
    "İ",
    "ß",
    "null",
    "undefined",
    "NaN",
    "true",
    "-1",
    "0",
    "1e309",
    "9".repeat(400),
    "x".repeat(20_000),
    "\r\nBcc: x@example.com",
    "'; drop table users; --",
    "<script>",
    "{{7*7}}",
    "../../etc/passwd",
    "%00",
    "https://127.0.0.1/",
    "https://[::1]:0/",
    "http://x",
    "*",
    "@example.com",
    '"a b"@example.com',
    "a@xn--",
    ...NAMES_OF_OBJECTS,
  ),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
);

const oddNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 0.5, 2 ** 31, -(2 ** 31), 2 ** 53, 2 ** 63, 1e308, -1e308, 5e-324),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: oddText },
  { weight: 2, arbitrary: oddNumber },
  { weight: 2, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null]) },
  { weight: 1, arbitrary: fc.array(oddText, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.array(oddNumber, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.dictionary(oddText, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
);

export interface Known {
  /** The components of the document. */
  schemas: Record<string, Json>;
  /** What there is, by the names that parameters and members have for it. */
  own: Record<string, string>;
}

/** Values that a schema of the document allows, as far as a schema tells. */
function valuesOf(schema: Json, about: Known): fc.Arbitrary<unknown> {
  if (typeof schema["$ref"] === "string")
    return valuesOf(about.schemas[schema["$ref"].split("/").at(-1) ?? ""] ?? {}, about);
  const examples = schema["examples"] as unknown[] | undefined;
  const made = madeOf(schema, about);
  return examples
    ? fc.oneof({ weight: 1, arbitrary: fc.constantFrom(...examples) }, { weight: 2, arbitrary: made })
    : made;
}

function madeOf(schema: Json, about: Known): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema["const"]);
  if (schema["enum"]) return fc.constantFrom(...(schema["enum"] as unknown[]));
  const branches = schema["anyOf"] as Json[] | undefined;
  if (branches) return fc.oneof(...branches.map((branch) => valuesOf(branch, about)));
  return BY_TYPE[String(schema["type"])]?.(schema, about) ?? fc.jsonValue({ maxDepth: 2 });
}

const BY_TYPE: Record<string, (schema: Json, about: Known) => fc.Arbitrary<unknown>> = {
  object: objectsOf,
  array: (schema, about) =>
    fc.array(valuesOf((schema["items"] ?? {}) as Json, about), {
      maxLength: Math.min(3, Number(schema["maxItems"] ?? 3)),
    }),
  string: (schema, about) => textsOf(schema, Object.values(about.own)),
  integer: numbersOf,
  number: numbersOf,
  boolean: () => fc.boolean(),
  null: () => fc.constant(null),
};

function numbersOf(schema: Json): fc.Arbitrary<number> {
  return fc.integer({
    min: Math.max(Number(schema["minimum"] ?? -1_000), -(2 ** 31)),
    max: Math.min(Number(schema["maximum"] ?? 2 ** 31 - 1), 2 ** 31 - 1),
  });
}

function objectsOf(schema: Json, about: Known): fc.Arbitrary<unknown> {
  const members = Object.entries((schema["properties"] ?? {}) as Record<string, Json>);
  if (members.length === 0) {
    const values = schema["additionalProperties"];
    const value =
      typeof values === "object" && values ? valuesOf(values as Json, about) : fc.jsonValue({ maxDepth: 2 });
    return fc.dictionary(fc.string({ maxLength: 20 }), value, { maxKeys: 3 });
  }
  const model = Object.fromEntries(members.map(([name, part]) => [name, memberOf(name, part, about)]));
  return fc.record(model, { requiredKeys: (schema["required"] ?? []) as string[] });
}

function memberOf(name: string, schema: Json, about: Known): fc.Arbitrary<unknown> {
  // "id" alone is no noun: it ends the name of every reference.
  const fitting = Object.entries(about.own).find(([noun]) => noun !== "id" && name.endsWith(noun))?.[1];
  const any = valuesOf(schema, about);
  return fitting === undefined
    ? any
    : fc.oneof({ weight: 3, arbitrary: fc.constant(fitting) }, { weight: 1, arbitrary: any });
}

function textsOf(schema: Json, ids: string[]): fc.Arbitrary<string> {
  if (schema["format"] === "uuid") return fc.oneof(fc.constantFrom(...ids), fc.uuid());
  if (schema["format"] === "email")
    return fc.constantFrom("ada@example.com", "bob@example.org", "zoë@exämple.com");
  if (typeof schema["pattern"] === "string") return fc.stringMatching(new RegExp(schema["pattern"]));
  const minLength = Number(schema["minLength"] ?? 0);
  const maxLength = Number(schema["maxLength"] ?? 60);
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 60)) }),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(maxLength, maxLength + 1)
        .map((length) => "x".repeat(Math.min(length, 300_000))),
    },
  );
}

/** The text of a body: mostly near to what the schema allows, now and then something else altogether. */
export function bodiesOf(schema: Json, about: Known): fc.Arbitrary<string> {
  const near = valuesOf(schema, about);
  const names = Object.keys(schema["properties"] ?? {});
  const spoilt = fc
    .tuple(near, fc.dictionary(fc.constantFrom(...names, "id", "user_id"), oddValue, { maxKeys: 3 }))
    .map(([value, odd]) => ({ ...(value as object), ...odd }));
  const crowded = fc.tuple(near, fc.constantFrom(...NAMES_OF_OBJECTS), oddValue).map(([value, name, odd]) => {
    const member = `{${JSON.stringify(name)}:${JSON.stringify(odd)}`;
    const rest = JSON.stringify(value).slice(1);
    return rest === "}" ? `${member}}` : `${member},${rest}`;
  });
  return fc.oneof(
    { weight: 4, arbitrary: near.map((value) => JSON.stringify(value)) },
    { weight: 5, arbitrary: spoilt.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: crowded },
    { weight: 1, arbitrary: oddValue.map((value) => JSON.stringify(value)) },
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.constantFrom(
          "",
          "{",
          "{}{}",
          "nul",
          '{"a":1,}',
          "\u{feff}{}",
          "[".repeat(5_000),
          '{"a":'.repeat(100),
        ),
        fc.string({ unit: "binary", maxLength: 60 }),
      ),
    },
  );
}

/** The value of a parameter as it stands in an address or a header. */
export function wordsOf(name: string, schema: Json, about: Known): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 5, arbitrary: memberOf(name, schema, about).map(String) },
    { weight: 1, arbitrary: oddText },
  );
}
