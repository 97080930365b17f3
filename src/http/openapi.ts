import type { TSchema } from "@sinclair/typebox";
import { ERROR_CODES, type ErrorCode } from "../errors.ts";
import { API_VERSION } from "../version.ts";
import { type BytesAnswer, type Description, descriptionOf, TAGS } from "./describe.ts";
import { problemOf, STATUS, TITLES } from "./errors.ts";
import { exampleOf } from "./openapi-example.ts";

/** A schema, or any other part of the document, as plain JSON. */
export type Json = Record<string, unknown>;

export interface OpenApiDocument {
  openapi: string;
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json>; [part: string]: unknown };
  [part: string]: unknown;
}

interface RouteSchemas {
  body?: unknown;
  params?: unknown;
  query?: unknown;
  detail?: unknown;
}

export interface DescribedRoute {
  method: string;
  path: string;
  hooks: RouteSchemas;
}

const ALWAYS: ErrorCode[] = ["internal", "unavailable"];
const EXAMPLE_REQUEST = {
  base_url: "https://mail.example.org",
  request_id: "req_0198c0ffee007000800000000000cafe",
};

/** OpenAPI 3.1 of all routes that have a description. Schemas with an `$id` become components of that name. */
export function openApiOf(routes: DescribedRoute[]): OpenApiDocument {
  const schemas: Record<string, Json> = { Problem: PROBLEM };
  const paths: OpenApiDocument["paths"] = {};
  for (const { method, path, hooks } of routes) {
    const description = descriptionOf(hooks.detail);
    if (!description) continue;
    const template = path.replaceAll(/:(\w+)/g, "{$1}");
    paths[template] ??= {};
    paths[template][method.toLowerCase()] = operationOf({ method, path, hooks }, description, schemas);
  }
  return {
    openapi: "3.1.0",
    info: INFO,
    servers: [{ url: "/" }],
    security: [{ ApiKey: [] }, { Session: [] }],
    tags: TAGS.map((name) => ({ name })),
    paths,
    components: {
      schemas,
      headers: {
        RequestId: {
          description: "Names this request in the log of the server.",
          schema: { type: "string" },
        },
        RetryAfter: { description: "Seconds to wait (RFC 9110).", schema: { type: "integer", minimum: 1 } },
      },
      securitySchemes: {
        ApiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
        Session: { type: "apiKey", in: "cookie", name: "service_session" },
      },
    },
  };
}

const INFO = {
  title: "Mailwright",
  version: API_VERSION,
  description:
    "Turns mail, or a call, into finished work. Errors are problem+json (RFC 9457); times are unix seconds; unknown members are ignored.",
};

const PROBLEM: Json = {
  type: "object",
  required: ["type", "title", "status", "detail", "code", "request_id"],
  properties: {
    type: { type: "string", format: "uri" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What is wrong, for a person to read." },
    code: { type: "string", enum: [...ERROR_CODES] },
    request_id: { type: "string" },
    fix: { type: "string", description: "What can be done about it." },
    errors: {
      type: "array",
      description: "One entry for each fault of the request.",
      items: {
        type: "object",
        required: ["path", "code", "message"],
        properties: {
          path: { type: "string", examples: ["body.title"] },
          code: { type: "string", examples: ["too_long"] },
          message: { type: "string" },
        },
      },
    },
    limit: { type: "integer", description: "What the plan allows." },
    current: { type: "integer", description: "What there is." },
    required_plan: { type: "string", enum: ["pro", "team"] },
    allow: { type: "string", description: "The methods that are possible." },
  },
};

function operationOf(route: DescribedRoute, about: Description, schemas: Record<string, Json>): Json {
  const body = about.optional_body ?? (route.hooks.body as TSchema | undefined);
  return {
    tags: [about.tag],
    summary: about.summary,
    ...(about.description === undefined ? {} : { description: about.description }),
    operationId: operationId(route),
    ...(about.open ? { security: [] } : {}),
    parameters: parametersOf(route, about, schemas),
    ...(body === undefined
      ? {}
      : {
          requestBody: { required: about.optional_body === undefined, content: bodyContent(body, schemas) },
        }),
    responses: { ...successes(about, schemas), ...refusals(errorsOf(route, about), about.limited, schemas) },
  };
}

function operationId({ method, path }: DescribedRoute): string {
  const words = path.split(/[/:_-]+/).filter(Boolean);
  return [method.toLowerCase(), ...words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join(
    "",
  );
}

function parametersOf(route: DescribedRoute, about: Description, schemas: Record<string, Json>): Json[] {
  const params = propertiesOf(route.hooks.params);
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: params[name] ? plain(params[name], schemas) : { type: "string" },
  }));
  const inQuery = Object.entries(propertiesOf(route.hooks.query)).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema: plain(schema, schemas),
  }));
  const inHeader = Object.entries(about.headers ?? {}).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
  return [...inPath, ...inQuery, ...inHeader];
}

function propertiesOf(schema: unknown): Record<string, TSchema> {
  return (schema as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
}

function bodyContent(body: TSchema, schemas: Record<string, Json>): Json {
  const isForm = Object.values(propertiesOf(body)).some((property) => property["format"] === "binary");
  const schema = plain(body, schemas);
  if (isForm) return { "multipart/form-data": { schema } };
  return { "application/json": { schema, example: exampleOf(schema, schemas) } };
}

function successes(about: Description, schemas: Record<string, Json>): Json {
  const own = Object.entries(about.answer_headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  const headers = { "X-Request-Id": REQUEST_ID, ...Object.fromEntries(own) };
  const answers = Object.entries(about.answers).map(([status, answer]) => {
    if (answer === null) return [status, { description: "Done; there is no body.", headers }];
    if (isBytes(answer))
      return [
        status,
        {
          description: answer.words,
          headers,
          content: { [answer.content_type]: { schema: { type: "string", format: "binary" } } },
        },
      ];
    const schema = plain(answer, schemas);
    const example = exampleOf(schema, schemas);
    return [status, { description: "Done.", headers, content: { "application/json": { schema, example } } }];
  });
  return Object.fromEntries(answers);
}

const REQUEST_ID = { $ref: "#/components/headers/RequestId" };

function isBytes(answer: TSchema | BytesAnswer): answer is BytesAnswer {
  return "content_type" in answer;
}

/** What a route can refuse, told by its shape and its description. */
function errorsOf({ method, path, hooks }: DescribedRoute, about: Description): ErrorCode[] {
  const writes = method !== "GET";
  return [
    ...(about.open ? [] : (["unauthorized", "rate_limited"] as const)),
    ...(writes && !about.open ? (["cross_origin"] as const) : []),
    ...(writes ? (["payload_too_large", "validation_error"] as const) : []),
    ...(hooks.params || hooks.query ? (["validation_error"] as const) : []),
    ...(path.includes(":") ? (["not_found"] as const) : []),
    ...(about.errors ?? []),
    ...ALWAYS,
  ];
}

function refusals(codes: ErrorCode[], limited: TSchema | undefined, schemas: Record<string, Json>): Json {
  const byStatus = Map.groupBy(new Set(codes), (code) => STATUS[code]);
  const answers = Object.fromEntries(
    [...byStatus].map(([status, group]) => [status, refusal(status, group)]),
  );
  if (limited === undefined) return answers;
  const schema = plain(limited, schemas);
  const { content, ...rate } = refusal(429, ["rate_limited"]);
  const both = { ...(content as Json), "application/json": { schema, example: exampleOf(schema, schemas) } };
  return { ...answers, 429: { ...rate, content: both } };
}

function refusal(status: number, codes: ErrorCode[]): Json {
  const examples = codes.map((code) => [code, { value: problemOf(exampleError(code), EXAMPLE_REQUEST) }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${TITLES[code]}.`).join(" "),
    headers: {
      "X-Request-Id": REQUEST_ID,
      ...(status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {}),
    },
    content: {
      "application/problem+json": {
        schema: { $ref: "#/components/schemas/Problem" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function exampleError(code: ErrorCode) {
  const faults = [{ path: "body.title", code: "too_long", message: "must have at most 200 characters" }];
  return { code, message: `${TITLES[code]}.`, extras: code === "validation_error" ? { faults } : {} };
}

/** A TypeBox schema as JSON Schema, its named parts moved to the components. */
function plain(schema: TSchema, schemas: Record<string, Json>): Json {
  return cleaned(JSON.parse(JSON.stringify(schema)) as Json, schemas);
}

function cleaned(given: Json, schemas: Record<string, Json>): Json {
  const { $id, nullable: _nullable, title: _title, ...schema } = given;
  const branches = schema["anyOf"] as Json[] | undefined;
  const integer = branches?.find((branch) => branch["type"] === "integer");
  // Elysia lets a number in the query also be its text.
  if (integer && branches?.some((branch) => branch["type"] === "string")) return cleaned(integer, schemas);
  if (branches?.every((branch) => "const" in branch))
    return { ...without(schema, "anyOf"), type: "string", enum: branches.map((branch) => branch["const"]) };
  if (schema["format"] === "binary") return { type: "string", format: "binary" };
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name in DEEPER ? deeper(name, value, schemas) : value,
    ]),
  );
  if ($id === undefined) return inner;
  schemas[String($id)] = inner;
  return { $ref: `#/components/schemas/${String($id)}` };
}

const DEEPER = { properties: "map", patternProperties: "map", anyOf: "list", allOf: "list", items: "one" };

function deeper(name: string, value: unknown, schemas: Record<string, Json>): unknown {
  const shape = DEEPER[name as keyof typeof DEEPER];
  if (shape === "one") return cleaned(value as Json, schemas);
  if (shape === "list") return (value as Json[]).map((one) => cleaned(one, schemas));
  const members = Object.entries(value as Record<string, Json>);
  return Object.fromEntries(members.map(([key, one]) => [key, cleaned(one, schemas)]));
}

function without(schema: Json, name: string): Json {
  const { [name]: _dropped, ...rest } = schema;
  return rest;
}
