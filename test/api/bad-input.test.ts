import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type OpenApiDocument, openApiOf } from "../../src/http/openapi.ts";
import type { Json } from "../../src/http/openapi-schema.ts";
import { createHttp } from "../../src/api.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";

/** Nobody listens there: nothing here may ask the world. */
const NO_DNS = { servers: ["127.0.0.1:9"] };
const CONFIG = { llm: { kind: "demo" as const }, dns: NO_DNS, plans: { team: { api_per_minute: 0 } } };

interface Operation {
  name: string;
  method: string;
  path: string;
  /** Schema of its JSON body, the reference to a component resolved; undefined where it takes none. */
  body: Json | undefined;
  example: Record<string, unknown>;
  parameters: { name: string; in: string; schema: Json }[];
}

const { document, operations } = await describedOperations();
/** Forms, what answers 204 whatever it is sent, and what looks at the signature first. */
const OTHERS = new Set([
  "/contexts/upload",
  "/integrations/{provider}/confirm",
  "/integrations/mcp/confirm",
  "/auth/logout",
  "/billing/webhook",
  "/inbound/raw",
]);
const writing = operations.filter(({ method, path }) => method !== "GET" && !OTHERS.has(path));
const withBody = writing.filter(({ body }) => body !== undefined);
const withIds = operations.filter(({ parameters }) =>
  parameters.some(({ in: place, schema }) => place === "path" && schema["format"] === "uuid"),
);

/** One for all that is refused: a refusal leaves nothing behind. */
let t: TestApp;
let ada: Caller;

beforeAll(async () => {
  t = await testApp(CONFIG);
  ada = await t.as("ada@example.com");
});

afterAll(() => t[Symbol.asyncDispose]());

test("there is something to try", () => {
  expect([operations.length > 45, withBody.length > 15, withIds.length > 15]).toEqual([true, true, true]);
});

describe("whatever the route", () => {
  test.each(withIds)("$name refuses an id that is no uuid, and names the parameter", async (operation) => {
    const id = operation.parameters.find(
      ({ in: place, schema }) => place === "path" && schema["format"] === "uuid",
    );
    for (const bad of ["not-an-id", "123", "%27", "0198c0ff-ee00-7000-8000-00000000caf", "x".repeat(500)]) {
      const path = operation.path.replace(`{${id?.name}}`, bad).replaceAll(/\{\w+\}/g, Bun.randomUUIDv7());
      const answer = await send(t, ada, operation, { path, body: "{}" });
      expect([answer.status, answer.body.code, answer.body.errors?.[0]?.path]).toEqual([
        422,
        "validation_error",
        `path.${id?.name}`,
      ]);
    }
  });

  test.each(writing)("$name refuses a body that is no JSON object", async (operation) => {
    const path = pathOf(operation);
    const bad: [body: string, type: string][] = [
      ["{ not json", "application/json"],
      ['{"a": 1} trailing', "application/json"],
      ["[]", "application/json"],
      ["7", "application/json"],
      ["null", "application/json"],
      ['"text"', "application/json"],
      ["{}", "text/plain"],
      ["a=1", "application/x-www-form-urlencoded"],
      [`${'{"a":'.repeat(50)}1${"}".repeat(50)}`, "application/json"],
    ];
    for (const [body, type] of bad) {
      const answer = await send(t, ada, operation, { path, body, type });
      expect([body, answer.status, answer.body.errors?.[0]?.code]).toEqual([body, 422, "json_invalid"]);
    }
  });

  test.each(writing)("$name refuses a body over the transport's cap with 413", async (operation) => {
    const megabytes = operation.path === "/v1/messages" ? 40 : 1;
    const body = `{"pad":"${"x".repeat(megabytes * 1_048_576)}"}`;
    const answer = await send(t, ada, operation, { path: pathOf(operation), body });
    expect([answer.status, answer.body.code]).toEqual([413, "payload_too_large"]);
  });

  const demanding = withBody.filter(({ body }) => membersOf(body).required.length > 0);
  test.each(demanding)("$name names each member that is missing", async (operation) => {
    const answer = await send(t, ada, operation, { path: pathOf(operation), body: "{}" });
    const faults = (answer.body.errors as { path: string; code: string }[]).map(
      ({ path, code }) => `${path} ${code}`,
    );
    expect(answer.status).toBe(422);
    for (const name of membersOf(operation.body).required) expect(faults).toContain(`body.${name} missing`);
  });

  test.each(withBody)(
    "$name refuses a value of the wrong kind for each of its members",
    async (operation) => {
      const { properties } = membersOf(operation.body);
      for (const [name, schema] of Object.entries(properties)) {
        const wrong = wrongFor(schema);
        if (wrong === undefined) continue;
        const given = { ...operation.example, [name]: wrong };
        const answer = await send(t, ada, operation, {
          path: pathOf(operation),
          body: JSON.stringify(given),
        });
        const paths = (answer.body.errors as { path: string }[] | undefined)?.map(({ path }) => path);
        expect([name, answer.status]).toEqual([name, 422]);
        expect(paths?.some((path) => path.startsWith(`body.${name}`))).toBe(true);
      }
    },
  );

  test.each(withBody)("$name refuses a text that is too long for each of its members", async (operation) => {
    const { properties } = membersOf(operation.body);
    for (const [name, schema] of Object.entries(properties)) {
      const { maxLength } = branchOf(schema, "string") as { maxLength?: number };
      if (maxLength === undefined) continue;
      const given = { ...operation.example, [name]: "x".repeat(maxLength + 1) };
      const answer = await send(t, ada, operation, { path: pathOf(operation), body: JSON.stringify(given) });
      expect([name, answer.status]).toEqual([name, 422]);
      expect(JSON.stringify(answer.body)).not.toContain("x".repeat(300));
    }
  });

  test.each(withBody)("$name takes no notice of a member that it does not know", async (operation) => {
    const answers: unknown[] = [];
    for (const extra of [{}, { not_known: { deep: [1] }, __proto__x: 1 }]) {
      await using fresh = await testApp(CONFIG);
      const caller = await fresh.as("ada@example.com");
      const given = { ...operation.example, ...extra };
      const answer = await send(fresh, caller, operation, {
        path: pathOf(operation),
        body: JSON.stringify(given),
      });
      answers.push([answer.status, answer.body.code]);
    }
    expect(answers[1]).toEqual(answers[0]);
  });
});

async function describedOperations(): Promise<{ document: OpenApiDocument; operations: Operation[] }> {
  await using t = await testApp();
  const document = openApiOf(createHttp(t.app, { ready: async () => ({}) }).routes);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationOf(document, path, method, operation)),
  );
  return { document, operations };
}

function operationOf(of: OpenApiDocument, path: string, method: string, operation: Json): Operation {
  const request = operation["requestBody"] as { content: Record<string, Json> } | undefined;
  const json = request?.content["application/json"] as { schema: Json; example?: object } | undefined;
  return {
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    body: json && resolved(of, json.schema),
    example: { ...json?.example },
    parameters: operation["parameters"] as Operation["parameters"],
  };
}

function resolved(of: OpenApiDocument, schema: Json): Json {
  const reference = schema["$ref"];
  return typeof reference === "string"
    ? (of.components.schemas[reference.split("/").at(-1) ?? ""] ?? {})
    : schema;
}

function membersOf(body: Json | undefined): { properties: Record<string, Json>; required: string[] } {
  const { properties = {}, required = [] } = (body ?? {}) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return { properties, required };
}

/** The schema itself or, of several, the branch of this type. */
function branchOf(schema: Json, type: string): Json {
  const branches = (schema["anyOf"] as Json[] | undefined) ?? [schema];
  return branches.map((branch) => resolved(document, branch)).find((branch) => branch["type"] === type) ?? {};
}

/** A value of a kind that no branch of the schema allows. */
function wrongFor(schema: Json): unknown {
  const branches = ((schema["anyOf"] as Json[] | undefined) ?? [schema]).map((one) =>
    resolved(document, one),
  );
  const types = new Set(branches.map((branch) => branch["type"]));
  if (types.has(undefined)) return undefined;
  const candidates: [string, unknown][] = [
    ["object", { wrong: true }],
    ["array", [{ wrong: true }]],
    ["boolean", true],
  ];
  return candidates.find(([type]) => !types.has(type))?.[1];
}

function pathOf({ path }: Operation): string {
  return path.replaceAll(/\{\w+\}/g, () => Bun.randomUUIDv7());
}

function send(
  t: TestApp,
  caller: Caller,
  { method }: Operation,
  { path, body, type = "application/json" }: { path: string; body: string; type?: string },
): Promise<Answer> {
  return t.request(path, {
    method,
    headers: { "x-api-key": caller.key, "content-type": type },
    ...(method === "GET" ? {} : { body }),
  });
}
