import type { TSchema } from "@sinclair/typebox";
import type { ErrorCode } from "../errors.ts";

/** Sections of the API reference in the order shown: the most used first. */
export const TAGS = [
  "Routing",
  "Schedules",
  "Approvals",
  "Auth",
  "Connections",
  "Integrations",
  "Contexts",
  "Inboxes",
  "Messages",
  "Webhooks",
  "Conversations",
  "Custom domains",
  "Recipes",
  "Billing",
  "Contacts",
  "Server",
  "Administration",
] as const;

/** A request or response body that is not JSON. */
export interface BytesAnswer {
  content_type: string;
  words: string;
}

/** What the OpenAPI document says about a route beyond its schemas; see `openapi.ts`. */
export interface Description {
  tag: (typeof TAGS)[number];
  summary: string;
  description?: string;
  /** The successful responses by status: the schema of the JSON, `BytesAnswer`, or null without a body. */
  answers: Record<number, TSchema | BytesAnswer | null>;
  /**
   * Errors of this route, apart from those that follow from its method, parameters and body (401, 404, 413, 422, 429,
   * 5xx …).
   */
  errors?: ErrorCode[];
  /** Request headers that the route reads, with a sentence about each. */
  headers?: Record<string, string>;
  /** Response headers of its successful responses, with a sentence about each. */
  answer_headers?: Record<string, string>;
  /** The schema of a 429 that means that the credits are used up. */
  limited?: TSchema;
  /** True for a route that needs no credential. */
  open?: true;
  /** The documented schema of a body that the route does not validate, such as an optional one. */
  optional_body?: TSchema;
  /** True when the body is a form posted by a page of this server. */
  form?: true;
  /** A body that is not JSON. */
  bytes_body?: BytesAnswer;
}

const KEY = "x-description";

/** Returns route options that hold a description: `{ body, params, ...describe({ … }) }`. */
export function describe(description: Description): { detail: object } {
  return { detail: { [KEY]: description } };
}

/** Returns the description of a route; undefined for one outside of the documented API, such as a page of the docs. */
export function descriptionOf(detail: unknown): Description | undefined {
  return (detail as Record<string, Description> | undefined)?.[KEY];
}
