import { describe, expect, test } from "bun:test";
import { checkBy } from "../../src/lib/json-schema.ts";
import { ownMs } from "../support/own-time.ts";

test("says what does not fit", async () => {
  const schema = {
    type: "object",
    properties: { pattern: { type: "string" }, n: { type: "integer" } },
    required: ["pattern"],
    additionalProperties: false,
  };
  const check = await checkBy(schema);
  expect(check({ pattern: "a property may be called so" })).toBeNull();
  expect(check({ pattern: 1 })).toBe("/pattern must be string");
  expect(check({})).toContain("required property 'pattern'");
  expect(check({ pattern: "x", more: 1 })).toContain(`may not have "more"`);
  expect(await checkBy(schema)).toBe(check);
});

test("knows references and the older dialect", async () => {
  const check = await checkBy({
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { a: { $ref: "#/definitions/word" } },
    definitions: { word: { enum: ["yes", "no"] } },
  });
  expect(check({ a: "yes" })).toBeNull();
  expect(check({ a: "maybe" })).not.toBeNull();
});

test("matches no pattern of others, which could take for ever", async () => {
  const check = await checkBy({ type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } });
  expect(check({ a: `${"a".repeat(40)}!` })).toBeNull();
});

test("asks for no more than the schema does, although it looks at no pattern and no format", async () => {
  const check = await checkBy({
    type: "object",
    properties: {
      when: {
        oneOf: [
          { type: "string", format: "date" },
          { type: "string", pattern: "^now$" },
        ],
      },
      name: { type: "string", not: { pattern: "^ " } },
      kind: JSON.parse('{"if": {"pattern": "^x"}, "then": {"maxLength": 1}}'),
    },
    patternProperties: { "^x-": { type: "string" } },
    additionalProperties: false,
  });
  expect(check({ when: "2026-01-01", name: "Ada", kind: "yes", "x-more": "1" })).toBeNull();
  expect(check({ when: 1 })).toContain("/when must be string");
});

test("knows what stands beside a reference, and in a reference", async () => {
  const check = await checkBy({
    type: "object",
    properties: { a: { $ref: "#/$defs/a~1b", maximum: 5 } },
    $defs: { "a/b": { $ref: "#/$defs/number" }, number: { type: "number", minimum: 1 } },
  });
  expect(check({ a: 3 })).toBeNull();
  expect(check({ a: 0 })).toBe("/a must be >= 1");
  expect(check({ a: 7 })).toBe("/a must be <= 5");
});

test("takes no time for a schema that was made to take it", async () => {
  const doubling = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` };
        return [`d${index}`, { allOf: [next, next] }];
      }),
    );
  const self = { type: "object", properties: { x: { $ref: "#/$defs/a" } } };
  const schemas = [
    { type: "object", $ref: "#/$defs/d0", $defs: { ...doubling(60), d60: {} } },
    { type: "object", $ref: "#/$defs/d0", $defs: { ...doubling(9), d9: {} } },
    {
      ...self,
      $defs: {
        a: {
          anyOf: [
            { ...self, required: ["q"] },
            { ...self, required: ["r"] },
          ],
        },
      },
    },
    { type: "object", allOf: [{ $ref: "#" }] },
    { type: "object", properties: { a: { uniqueItems: true } } },
    JSON.parse(`${'{"not":'.repeat(2_000)}{}${"}".repeat(2_000)}`),
  ];
  const args = {
    a: Array.from({ length: 20_000 }, (_, index) => ({ index })),
    x: JSON.parse(`${'{"x":'.repeat(90)}{}${"}".repeat(90)}`),
  };
  const started = ownMs();
  for (const schema of schemas) (await checkBy(schema))(args);
  expect(ownMs() - started).toBeLessThan(1_500);
});

test("a schema that calls itself asynchronous is checked like any other", async () => {
  const schema = { $async: true, type: "object", properties: { a: { type: "number" } }, required: ["a"] };
  const check = await checkBy(schema);
  expect([check({ a: 1 }), check({ a: "1" })]).toEqual([null, expect.stringContaining("a")]);
});

test.each<[string, Record<string, unknown>]>([
  ["a lost reference", { type: "object", properties: { a: { $ref: "#/nowhere" } } }],
  [
    "a reference to elsewhere",
    { type: "object", properties: { a: { $ref: "https://evil.example/s.json" } } },
  ],
  ["an unknown type", { type: "thing" }],
  ["no schema at all", { properties: 7 }],
])("asks nothing of a schema with %s", async (_name, schema) => {
  expect((await checkBy(schema))({ a: 1 })).toBeNull();
});

describe("a schema that would take long on what it is asked about is not asked", () => {
  const values = Array.from({ length: 400 }, (_one, at) => at);
  const each = (schema: object, count: number) => ({
    type: "object",
    properties: { a: { items: { anyOf: Array.from({ length: count }, () => schema) } } },
  });
  const repeated = { ...each({ $ref: "#/$defs/e" }, 30), $defs: { e: { enum: values } } };

  test.each<[string, Record<string, unknown>, unknown, unknown]>([
    ["many values, wherever references repeat them", repeated, { a: ["x"] }, { a: Array(9_900).fill("x") }],
    ["many parts", each({ const: 1 }, 100), { a: [2] }, { a: Array(9_900).fill(2) }],
    ["a long text", each({ maxLength: 1 }, 250), { a: ["long"] }, { a: ["x".repeat(100_000)] }],
    ["long names", each({ required: ["q"] }, 100), { a: [{}] }, { a: [{ ["x".repeat(300_000)]: 1 }] }],
  ])("%s", async (_what, schema, small, large) => {
    const check = await checkBy(schema);
    expect(check(large)).toBeNull();
    // The control: it says what does not fit as long as there is little to look at; where references make it huge, never.
    if (schema === repeated) expect(check(small)).toBeNull();
    else expect(check(small)).toContain("must");
  });
});
