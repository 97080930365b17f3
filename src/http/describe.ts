import type { TSchema } from "@sinclair/typebox";
import type { ErrorCode } from "../errors.ts";

/** In the order in which pages of documentation show them: first what most people are here for. */
export const TAGS = [
  "Routing",
  "Schedules",
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

/** A body that is not JSON. */
export interface BytesAnswer {
  content_type: string;
  words: string;
}

/** What the generated document says of a route beyond its schemas; see `openapi.ts`. */
export interface Description {
  tag: (typeof TAGS)[number];
  summary: string;
  description?: string;
  /** Each success by its status: the schema of its JSON, bytes, or null for no body. */
  answers: Record<number, TSchema | BytesAnswer | null>;
  /** Refusals of this route beside those that its shape already tells (401, 404, 413, 422, 429, 5xx …). */
  errors?: ErrorCode[];
  /** Request headers it looks at, with a sentence about each. */
  headers?: Record<string, string>;
  /** Response headers of its successes, with a sentence about each. */
  answer_headers?: Record<string, string>;
  /** The body of a 429 that says that the credits are used up. */
  limited?: TSchema;
  /** Answers without a credential. */
  open?: true;
  /** What a body without a schema may be, such as one that may be left out. */
  optional_body?: TSchema;
  /** The body comes from a form of a page of ours. */
  form?: true;
  /** A body that is not JSON. */
  bytes_body?: BytesAnswer;
}

const KEY = "x-description";

/** For the options of a route: `{ body, params, ...describe({ … }) }`. */
export function describe(description: Description): { detail: object } {
  return { detail: { [KEY]: description } };
}

/** Undefined for a route that is no part of the interface, such as a page of the docs. */
export function descriptionOf(detail: unknown): Description | undefined {
  return (detail as Record<string, Description> | undefined)?.[KEY];
}
