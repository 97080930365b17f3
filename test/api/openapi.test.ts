import { describe, expect, mock, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { ERROR_CODES, type ErrorCode } from "../../src/errors.ts";
import { descriptionOf } from "../../src/http/describe.ts";
import { STATUS } from "../../src/http/errors.ts";
import { type OpenApiDocument, openApiOf } from "../../src/http/openapi.ts";
import type { Json } from "../../src/http/openapi-schema.ts";
import { createHttp } from "../../src/api.ts";
import { testApp } from "../support/app.ts";
import { closeObjects, escapePointer } from "../support/contract.ts";

const GOLDEN = join(import.meta.dir, "../golden/openapi.json");
const ROOT = join(import.meta.dir, "../..");
/** What is there for people and for this document itself. */
const PAGES = /^\/$|^\/(docs|app)(\/|$)|^\/openapi\.json$/;

const document = await documentOfRoutes();
const operations = operationsOf(document);
const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
formats.default(ajv);
ajv.addSchema(closeObjects(document) as OpenApiDocument, "doc");

test("/openapi.json is OpenAPI 3.1 of version 0.1.0", async () => {
  await using t = await testApp();
  const answer = await t.request("/openapi.json");
  expect(answer.body).toEqual(document);
  expect(answer.body).toMatchObject({ openapi: "3.1.0", info: { version: "0.1.0" } });
});

test("the document is the one that was looked at and kept", async () => {
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if (process.env["UPDATE_GOLDEN"] !== undefined) await Bun.write(GOLDEN, text);
  const kept = await Bun.file(GOLDEN).text();
  if (kept === text) return;
  const at = kept.split("\n").findIndex((line, index) => line !== text.split("\n")[index]);
  throw new Error(
    `/openapi.json has changed, first in line ${at + 1} of test/golden/openapi.json. If that is meant, run ` +
      "`UPDATE_GOLDEN=1 bun test test/api/openapi.test.ts`, look at the difference and keep it.",
  );
});

test("the document is the same once routes have been used", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const { path, method } of operations)
    await t.request(path.replaceAll(/\{\w+\}/g, Bun.randomUUIDv7()), {
      method: method.toUpperCase(),
      headers: { "x-api-key": ada.key, "content-type": "application/json" },
      ...(method === "get" ? {} : { body: "{}" }),
    });
  expect(await documentOfRoutes()).toEqual(document);
});

test("every route but the pages is described", async () => {
  await using t = await testApp();
  const { routes } = createHttp(t.app, { ready: async () => ({}) });
  const silent = routes.filter((route) => !descriptionOf(route.hooks.detail) && !PAGES.test(route.path));
  expect(silent.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

test("every operation has an id of its own, a summary and a tag", () => {
  const ids = operations.map(({ operation }) => String(operation["operationId"]));
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  const tags = (document["tags"] as { name: string }[]).map(({ name }) => name);
  for (const { name, operation } of operations) {
    expect([name, operation["operationId"]]).toEqual([name, expect.stringMatching(/^[a-z][A-Za-z0-9]+$/)]);
    expect([name, String(operation["summary"]).length > 5]).toEqual([name, true]);
    for (const tag of operation["tags"] as string[]) expect(tags).toContain(tag);
  }
});

test("every operation names each of its answers, with words, and errors as problem+json", () => {
  for (const { name, responses } of operations) {
    const statuses = Object.keys(responses).map(Number);
    expect([name, statuses.some((status) => status < 300)]).toEqual([name, true]);
    for (const status of [500, 503])
      expect([name, statuses]).toEqual([name, expect.arrayContaining([status])]);
    for (const [status, response] of Object.entries(responses)) {
      expect([name, status, response["description"]]).toEqual([name, status, expect.stringMatching(/.{5,}/)]);
      const content = (response["content"] ?? {}) as Record<string, Json>;
      if (Number(status) >= 400)
        expect([name, status, Object.keys(content)]).toEqual([
          name,
          status,
          expect.arrayContaining([
            // Where a provider sends browsers back to, people read what went wrong.
            /\/(callback|confirm)$/.test(name) && status === "400" ? "text/html" : "application/problem+json",
          ]),
        ]);
    }
  }
});

test("a status with an answer of its own beside the error names both", () => {
  const typesOf = (path: string, method: string, status: number) => {
    const responses = document.paths[path]?.[method]?.["responses"] as Record<string, { content: Json }>;
    return Object.keys(responses[status]?.content ?? {}).sort();
  };
  expect(typesOf("/readyz", "get", 503)).toEqual(["application/json", "application/problem+json"]);
  expect(typesOf("/v1/messages", "post", 429)).toEqual(["application/json", "application/problem+json"]);
});

test("the first operation is the call that most people are here for", () => {
  expect((document["tags"] as { name: string }[])[0]?.name).toBe("Routing");
  const first = operations.find(({ operation }) => (operation["tags"] as string[])[0] === "Routing");
  expect(first?.name).toBe("post /v1/messages");
});

test("every moment says that it is in unix seconds", () => {
  const silent: string[] = [];
  const visit = (part: unknown, name: string): void => {
    if (typeof part !== "object" || part === null) return;
    const { type, anyOf, description, schema } = part as Json;
    const types = [type, ...((anyOf ?? []) as Json[]).map((branch) => branch["type"])];
    const whole = types.includes("integer") || (schema as Json | undefined)?.["type"] === "integer";
    if (whole && MOMENT.test(name) && !/unix (seconds|milliseconds)/.test(String(description)))
      silent.push(name);
    for (const [key, inner] of Object.entries(part))
      visit(inner, Array.isArray(part) ? String((inner as Json | null)?.["name"]) : key);
  };
  visit(document, "");
  expect(silent).toEqual([]);
});

/** What members that hold a moment are called. */
const MOMENT = /(_at|_start|_until)$|^(created|updated|completed|expires|since|until|resets_at)$/;

test("an operation that is not public names 401, and a public one says that it needs nothing", () => {
  for (const { name, operation, responses } of operations) {
    const open = Array.isArray(operation["security"]) && operation["security"].length === 0;
    if (!open) expect([name, Object.keys(responses)]).toEqual([name, expect.arrayContaining(["401"])]);
  }
});

test("every error is named with its own status, and its example says so too", () => {
  const known = document.components["examples"] as Record<string, { value: Json }>;
  for (const { name, responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      const content = response["content"] as Record<string, { examples?: Record<string, Json> }> | undefined;
      const examples = content?.["application/problem+json"]?.examples ?? {};
      for (const [code, reference] of Object.entries(examples)) {
        expect([name, reference]).toEqual([name, { $ref: `#/components/examples/${code}` }]);
        const said = { status: Number(status), code };
        expect([name, known[code]?.value]).toEqual([name, expect.objectContaining(said)]);
        expect(STATUS[code as ErrorCode]).toBe(said.status);
      }
    }
  }
});

test("every example of an error is an answer as the document describes it", () => {
  const examples = document.components["examples"] as Record<string, { value: unknown }>;
  expect(Object.keys(examples).sort()).toEqual([...ERROR_CODES].sort());
  const validate = validator("/components/schemas/Problem");
  for (const { value } of Object.values(examples)) expect([value, validate(value)]).toEqual([value, true]);
});

test("every example fits the schema beside it, and has no member that the schema does not name", () => {
  const faults: string[] = [];
  for (const { pointer, media } of mediaOf(document)) {
    if (!("example" in media)) continue;
    const validate = validator(`${pointer}/schema`);
    if (!validate(media["example"])) faults.push(`${pointer} ${JSON.stringify(validate.errors)}`);
  }
  expect(faults).toEqual([]);
});

test("whatever has to be of a form has an example of it, which a refusal names", () => {
  const bare: string[] = [];
  const look = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    if ("pattern" in value && typeof value.pattern === "string" && !("examples" in value)) bare.push(place);
    for (const [name, inner] of Object.entries(value)) look(inner, `${place}/${name}`);
  };
  look(document, "");
  expect(bare).toEqual([]);
});

test("every example of a JSON body or answer is there", () => {
  const bare = mediaOf(document).filter(
    ({ pointer, media }) => /json(\/|$)/.test(pointer) && !("example" in media) && !("examples" in media),
  );
  expect(bare.map(({ pointer }) => pointer)).toEqual([]);
});

describe("as those who read such documents see it", () => {
  test("the document has the structure of OpenAPI 3.1, and nothing in it leads nowhere", async () => {
    expect(await lint(document)).toEqual([]);
  });

  test("a document with a fault would be noticed", async () => {
    const broken = structuredClone(document) as OpenApiDocument & { info: Json };
    delete broken.info["title"];
    broken.paths["/livez"] = { get: { responses: { 200: {} }, bogus: true } };
    const faults = await lint(broken);
    expect(faults.join("\n")).toContain("`title`");
    expect(faults.join("\n")).toContain("`bogus`");
    expect(faults.join("\n")).toContain("`description`");
  });

  test("openapi-typescript makes types of it that compile, with which a program can be written", async () => {
    const dir = await mkdtemp(join(tmpdir(), "mailwright-types-"));
    await using _ = { [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
    await Bun.write(join(dir, "paths.ts"), await typesOf(document));
    await Bun.write(join(dir, "program.ts"), PROGRAM + TOO_MANY_PROGRAM.replace(/^import.*$/m, ""));
    expect(await compile(dir)).toEqual({ exit: 0, said: "" });
    await Bun.write(join(dir, "program.ts"), PROGRAM.replace("instruction:", "instructions:"));
    expect((await compile(dir)).said).toContain("'instructions' does not exist");
  }, 60_000);
});

/** What somebody would write around the types: a small client, and calls that its types hold to the interface. */
const PROGRAM = `
import type { components, paths } from "./paths.ts";

type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Success<T> = { [Status in keyof T]: Status extends 200 | 201 | 202 ? Json<T[Status]> : never }[keyof T];
type Answer<Operation> = Operation extends { responses: infer Responses } ? Success<Responses> : never;
type Body<Operation> = Operation extends { requestBody?: infer Given } ? Json<NonNullable<Given>> : never;

async function post<Path extends keyof paths>(
  path: Path,
  body: Body<paths[Path]["post"]>,
): Promise<Answer<paths[Path]["post"]>> {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw await response.json() as components["schemas"]["Problem"];
  return await response.json() as Answer<paths[Path]["post"]>;
}

export async function work(): Promise<string[]> {
  const context = await post("/contexts", { title: "House style", body: "Be brief.", kind: "instruction" });
  const slug: string = context.slug;
  const message = await post("/v1/messages", { instruction: "Summarise this +" + slug, content: "..." });
  const spent: number = message.credits.charged;
  const status: "done" | "failed" | "limited" | "skipped" | "processing" = message.status;
  for (const { path, did_you_mean } of message.warnings ?? []) console.warn(path, did_you_mean ?? "?");
  return [message.message_id, status, String(spent), ...message.attachments.map((file) => file.url)];
}
`;

/** What a client makes of a call that is one too many. */
const TOO_MANY_PROGRAM = `
import type { paths } from "./paths.ts";

type Refused = paths["/v1/messages"]["post"]["responses"][429]["content"];

export function wordsOf(refused: Refused["application/json"] | Refused["application/problem+json"]): string {
  if (refused.code === "credit_limit") return "none before " + refused.credits.resets_at.toFixed(0);
  const status: number = refused.status;
  return refused.detail + status;
}
`;

async function documentOfRoutes(): Promise<OpenApiDocument> {
  await using t = await testApp();
  const { routes } = createHttp(t.app, { ready: async () => ({}) });
  return JSON.parse(JSON.stringify(openApiOf(routes))) as OpenApiDocument;
}

/** Returns a check by the schema at a place in the document, closed to members that it does not name. */
function validator(pointer: string): ValidateFunction {
  return ajv.compile({ $ref: `doc#${pointer}` });
}

interface Operation {
  name: string;
  method: string;
  path: string;
  operation: Json;
  responses: Record<string, Json>;
}

function operationsOf({ paths }: OpenApiDocument): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method} ${path}`,
      method,
      path,
      operation,
      responses: operation["responses"] as Record<string, Json>,
    })),
  );
}

/** These hold what is called anything. */
const OTHER_PARTS = /^(schemas?|examples?)$/;

/** Every place where a schema stands beside examples, and the JSON pointer to it. */
function mediaOf(part: unknown, pointer = ""): { pointer: string; media: Json }[] {
  if (typeof part !== "object" || part === null) return [];
  const content = (part as Json)["content"] as Record<string, Json> | undefined;
  const own = Object.entries(content ?? {}).map(([type, media]) => ({
    pointer: `${pointer}/content/${escapePointer(type)}`,
    media,
  }));
  return [
    ...own,
    ...Object.entries(part).flatMap(([name, inner]) =>
      OTHER_PARTS.test(name) ? [] : mediaOf(inner, `${pointer}/${escapePointer(name)}`),
    ),
  ];
}

/** The rules of the specification itself; taste is not asked. */
const RULES = [
  "struct",
  "no-unresolved-refs",
  "operation-operationId-unique",
  "operation-parameters-unique",
  "path-parameters-defined",
  "path-not-include-query",
  "path-declaration-must-exist",
  "no-identical-paths",
  "security-defined",
  "spec-components-invalid-map-name",
  "no-enum-type-mismatch",
  "no-invalid-media-type-examples",
  "no-invalid-schema-examples",
];

async function lint(document: OpenApiDocument): Promise<string[]> {
  const rules = Object.fromEntries(RULES.map((rule) => [rule, "error" as const]));
  const config = await createConfig({ rules });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`);
}

/** It is made for the compiler before the project's, and asks for it by the name of the project's. */
async function typesOf(document: OpenApiDocument): Promise<string> {
  await mock.module("typescript", () => import("typescript-5"));
  const { default: openapiTypescript, astToString } = await import("openapi-typescript");
  return astToString(await openapiTypescript(JSON.stringify(document), { silent: true }));
}

async function compile(dir: string): Promise<{ exit: number; said: string }> {
  const options = ["--strict", "--noEmit", "--skipLibCheck", "false", "--allowImportingTsExtensions"];
  const target = ["--target", "ESNext", "--module", "Preserve", "--lib", "ESNext,DOM", "--types", ""];
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const compiler = Bun.spawn([process.execPath, tsc, ...options, ...target, "--ignoreConfig", "program.ts"], {
    cwd: dir,
  });
  const said = (await new Response(compiler.stdout).text()).trim();
  return { exit: await compiler.exited, said };
}
