import { expect, test } from "bun:test";
import { checkBy } from "../../src/lib/json-schema.ts";

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
  expect(check({ pattern: "x", more: 1 })).toContain("(more)");
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
