import type { TSchema } from "@sinclair/typebox";
import type { ErrorCode } from "../errors.ts";
import type { BytesAnswer, Description } from "./describe.ts";
import { STATUS, TITLES } from "./errors.ts";
import { bodyExampleOf, exampleOf } from "./openapi-example.ts";
import { type Json, jsonSchemaOf } from "./openapi-schema.ts";
import { WarningsShape } from "./shapes.ts";

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
const OWN_HEADERS = {
  "X-Request-Id": { $ref: "#/components/headers/RequestId" },
  "Mailwright-Warnings": { $ref: "#/components/headers/Warnings" },
};

/** Returns one operation of the document, and adds the named schemas it uses to `schemas`. */
export function operationOf(route: DescribedRoute, about: Description, schemas: Record<string, Json>): Json {
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
          requestBody: {
            required: about.optional_body === undefined,
            content: about.form ? formContent(body, schemas) : bodyContent(body, schemas),
          },
        }),
    ...(about.bytes_body === undefined ? {} : { requestBody: bytesBody(about.bytes_body) }),
    responses: withOneLimit(
      together(ownAnswers(about, schemas), refusals(errorsOf(route, about))),
      about.limited !== undefined,
    ),
  };
}

/** Returns the operation id: `GET /v1/messages/:id` becomes `getV1MessagesId`. */
function operationId({ method, path }: DescribedRoute): string {
  const words = path.split(/[/:._-]+/).filter(Boolean);
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
    schema: params[name] ? jsonSchemaOf(params[name], schemas) : { type: "string" },
  }));
  const inQuery = Object.entries(propertiesOf(route.hooks.query)).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema: jsonSchemaOf(schema, schemas),
  }));
  const inHeader = Object.entries(about.headers ?? {}).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
  return [...inPath, ...inQuery, ...inHeader].map(described);
}

/** Moves the description of a schema to its parameter, where documentation viewers look for it. */
function described(parameter: Json): Json {
  const { description, ...schema } = parameter["schema"] as Json;
  return description === undefined ? parameter : { ...parameter, description, schema };
}

function propertiesOf(schema: unknown): Record<string, TSchema> {
  return (schema as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
}

function bodyContent(body: TSchema, schemas: Record<string, Json>): Json {
  const is_form = Object.values(propertiesOf(body)).some((property) => property["format"] === "binary");
  const schema = jsonSchemaOf(body, schemas);
  if (is_form) return { "multipart/form-data": { schema } };
  return { "application/json": { schema, example: bodyExampleOf(schema, schemas) } };
}

/** Returns the content of a form without files. */
function formContent(body: TSchema, schemas: Record<string, Json>): Json {
  return { "application/x-www-form-urlencoded": { schema: jsonSchemaOf(body, schemas) } };
}

function bytesBody({ content_type, words }: BytesAnswer): Json {
  const content = { [content_type]: { schema: { type: "string", format: "binary" } } };
  return { required: true, description: words, content };
}

/**
 * Merges responses by status: one may have both an answer of the route and an error, such as a 503 that says what is
 * not ready.
 */
function together(answers: Record<string, Json>, refusals: Record<string, Json>): Record<string, Json> {
  const both = Object.entries(refusals).map(([status, refusal]) => {
    const content = {
      ...(refusal["content"] as Json),
      ...(answers[status]?.["content"] as Json | undefined),
    };
    return [status, { ...refusal, content }] as const;
  });
  return { ...answers, ...Object.fromEntries(both) };
}

/**
 * Documents the two 429 answers of a call, rate limit and used-up credits, as one response whose `code` tells them
 * apart.
 */
function withOneLimit(responses: Record<string, Json>, limited: boolean): Record<string, Json> {
  if (!limited) return responses;
  const media = Object.entries((responses[429]?.["content"] ?? {}) as Record<string, Json>);
  const schema = { $ref: "#/components/schemas/TooManyRequests" };
  const content = media.map(([type, one]) => [type, { ...one, schema }]);
  return { ...responses, 429: { ...responses[429], content: Object.fromEntries(content) } };
}

function ownAnswers(about: Description, schemas: Record<string, Json>): Record<string, Json> {
  const own = Object.entries(about.answer_headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  const headers = { ...OWN_HEADERS, ...Object.fromEntries(own) };
  const all = { ...about.answers, ...(about.limited === undefined ? {} : { 429: about.limited }) };
  const answers = Object.entries(all).map(([status, answer]) => {
    if (answer === null) return [status, { description: "Done; there is no body.", headers }] as const;
    if (isBytes(answer)) {
      const content = { [answer.content_type]: { schema: { type: "string", format: "binary" } } };
      return [status, { description: answer.words, headers, content }] as const;
    }
    const schema = jsonSchemaOf(answer, schemas);
    const example = exampleOf(schema, schemas);
    const content = { "application/json": { schema: withWarnings(schema, schemas), example } };
    return [status, { description: DONE[status] ?? "Done.", headers, content }] as const;
  });
  return Object.fromEntries(answers);
}

/** Adds `warnings` to the schema of an object, unless it has a member of that name. */
function withWarnings(schema: Json, schemas: Record<string, Json>): Json {
  const named = schemas[String(schema["$ref"]).split("/").at(-1) ?? ""];
  const { type, properties = {} } = (named ?? schema) as { type?: string; properties?: Json };
  if (type !== "object" || "warnings" in properties) return schema;
  const warnings = jsonSchemaOf(WarningsShape, schemas);
  return { allOf: [schema, { type: "object", properties: { warnings } }] };
}

const DONE: Record<string, string> = { 201: "Made.", 202: "Accepted; the work goes on." };

function isBytes(answer: TSchema | BytesAnswer): answer is BytesAnswer {
  return "content_type" in answer;
}

/** Returns the errors of a route: those that follow from its shape, and those in its description. */
function errorsOf({ method, path, hooks }: DescribedRoute, about: Description): ErrorCode[] {
  const writes = method !== "GET";
  return [
    ...(about.open ? [] : (["unauthorized", "rate_limited"] as const)),
    ...(writes && !about.open ? (["cross_origin"] as const) : []),
    ...(writes ? (["payload_too_large", "request_timeout", "validation_error"] as const) : []),
    ...(hooks.params || hooks.query ? (["validation_error"] as const) : []),
    ...(path.includes(":") ? (["not_found"] as const) : []),
    ...(about.errors ?? []),
    ...ALWAYS,
  ];
}

function refusals(codes: ErrorCode[]): Record<string, Json> {
  const byStatus = Map.groupBy(new Set(codes), (code) => STATUS[code]);
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, refusal(status, group)]));
}

function sentence(title: string): string {
  return title.endsWith("?") ? title : `${title}.`;
}

function refusal(status: number, codes: ErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${sentence(TITLES[code])}`).join(" "),
    headers: {
      ...OWN_HEADERS,
      ...(status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {}),
      ...(status === 401 ? { "WWW-Authenticate": { $ref: "#/components/headers/WwwAuthenticate" } } : {}),
    },
    content: {
      "application/problem+json": {
        schema: { $ref: "#/components/schemas/Problem" },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}
