import { ERROR_CODES } from "../errors.ts";
import { API_VERSION } from "../lib/version.ts";
import { descriptionOf, TAGS } from "./describe.ts";
import { exampleProblem } from "./error-catalogue.ts";
import { TITLES } from "./errors.ts";
import { type DescribedRoute, operationOf } from "./openapi-operation.ts";
import type { Json } from "./openapi-schema.ts";

export interface OpenApiDocument {
  openapi: string;
  tags: { name: string }[];
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json>; [part: string]: unknown };
  [part: string]: unknown;
}

/** Returns the OpenAPI 3.1 document of all routes that have a description. Schemas with an `$id` become components. */
export function openApiOf(routes: DescribedRoute[]): OpenApiDocument {
  const schemas: Record<string, Json> = {
    Problem: PROBLEM,
    RateLimited: RATE_LIMITED,
    TooManyRequests: TOO_MANY_REQUESTS,
  };
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes) {
    const description = descriptionOf(route.hooks.detail);
    if (!description) continue;
    const template = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[template] ??= {};
    paths[template][route.method.toLowerCase()] = operationOf(route, description, schemas);
  }
  return {
    openapi: "3.1.0",
    info: INFO,
    externalDocs: { url: "/docs/errors", description: "Every error: what it means and what to do." },
    servers: [{ url: "/" }],
    security: [{ ApiKey: [] }, { Session: [] }],
    tags: TAGS.filter((name) => isUsed(name, paths)).map((name) => ({ name })),
    paths,
    components: { schemas, headers: HEADERS, examples: EXAMPLES, securitySchemes: SECURITY_SCHEMES },
  };
}

function isUsed(tag: string, paths: OpenApiDocument["paths"]): boolean {
  const operations = Object.values(paths).flatMap((operations) => Object.values(operations));
  return operations.some((operation) => (operation["tags"] as string[]).includes(tag));
}

const INFO = {
  title: "Mailwright",
  version: API_VERSION,
  license: { name: "MIT", identifier: "MIT" },
  description: `Turns mail, or a call, into finished work.

Send an API key as \`X-API-Key\`. Errors are problem+json (RFC 9457), and the \`type\` of each is a page that explains it.
Times are unix seconds. Every path answers with and without a slash at its end.

Members of a body and parameters of a query that are not known are ignored, and named: the answer has the header
\`Mailwright-Warnings\` with their number, and, if it is a JSON object, \`warnings\`. With the header \`Mailwright-Strict: 1\` they are
refused with 422 before anything is done.`,
};

const HEADERS = {
  RequestId: {
    description: "Names this request in the log of the server.",
    schema: { type: "string" },
  },
  Warnings: {
    description: "How many members of the request are not known; not there without any.",
    schema: { type: "integer", minimum: 1 },
  },
  RetryAfter: { description: "Seconds to wait (RFC 9110).", schema: { type: "integer", minimum: 1 } },
  WwwAuthenticate: { description: "How to sign in (RFC 9110).", schema: { type: "string" } },
};

const SECURITY_SCHEMES = {
  ApiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "Made with POST /auth/api-key. `Authorization: Bearer` takes the same key.",
  },
  Session: {
    type: "apiKey",
    in: "cookie",
    name: "service_session",
    description: "Set by POST /auth/verify and POST /auth/login, for browsers.",
  },
};

const EXAMPLES = Object.fromEntries(
  ERROR_CODES.map((code) => [code, { summary: TITLES[code], value: exampleProblem(code) }]),
);

const PROBLEM: Json = {
  type: "object",
  description: "RFC 9457.",
  required: ["type", "title", "status", "detail", "code", "request_id"],
  properties: {
    type: { type: "string", format: "uri", description: "The page that explains this error." },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What is wrong, for a person to read." },
    code: { type: "string", enum: [...ERROR_CODES], description: "What is wrong, for a program." },
    request_id: { type: "string", description: "Names this request in the log of the server." },
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
    warnings: { $ref: "#/components/schemas/Warnings" },
    limit: { type: "integer", description: "What the plan allows." },
    current: { type: "integer", description: "What there is." },
    required_plan: { type: "string", enum: ["pro", "team"] },
    allow: { type: "string", description: "The methods that are possible." },
    step: { type: "string", description: "How far an authorisation came." },
  },
};

const RATE_LIMITED: Json = {
  ...PROBLEM,
  description: "Too many calls: wait as long as `Retry-After` says.",
  properties: { ...(PROBLEM["properties"] as Json), code: { type: "string", const: "rate_limited" } },
};

const TOO_MANY_REQUESTS: Json = {
  description: "Which of the two it is says `code`.",
  oneOf: [{ $ref: "#/components/schemas/CreditLimit" }, { $ref: "#/components/schemas/RateLimited" }],
  discriminator: {
    propertyName: "code",
    mapping: {
      credit_limit: "#/components/schemas/CreditLimit",
      rate_limited: "#/components/schemas/RateLimited",
    },
  },
};
