import { Elysia } from "elysia";
import { AppError, type FieldFault } from "../errors.ts";
import { descriptionOf } from "./describe.ts";
import type { DescribedRoute } from "./openapi-operation.ts";
import { type Unknown, unknownIn, type UnknownMember, unknownParameters } from "./unknown-members.ts";

const WARNINGS_HEADER = "Mailwright-Warnings";
const STRICT_HEADER = "Mailwright-Strict";

const bodies = new WeakMap<Request, unknown>();
/** Keyed by the headers object of the answer, which is available wherever an answer is written. */
const notes = new WeakMap<object, Noted>();

interface Noted extends Unknown {
  /** Whether the client asked for an error instead of warnings. */
  strict: boolean;
}

/** Keeps the body as sent, before validation removes unknown members. */
export function keepSent<Body>(request: Request, body: Body): Body {
  bodies.set(request, body);
  return body;
}

/**
 * Returns a hook for all routes that finds ignored members of a request; with `Mailwright-Strict: 1` they are an error.
 */
export function warningsHook(routes: () => DescribedRoute[]) {
  let known: Map<string, DescribedRoute> | undefined;
  return new Elysia()
    .onTransform({ as: "global" }, ({ request, route, set }) => {
      const body = bodies.get(request);
      bodies.delete(request);
      if (body === undefined && !request.url.includes("?")) return;
      known ??= new Map(routes().map((one) => [`${one.method} ${one.path}`, one]));
      const method = request.method === "HEAD" ? "GET" : request.method;
      const found = unknownTo(known.get(`${method} ${route}`), request.url, body);
      if (!found || found.count === 0) return;
      const strict = /^(1|true)$/i.test(request.headers.get(STRICT_HEADER)?.trim() ?? "");
      notes.set(set.headers, { ...found, strict });
      if (!strict) set.headers[WARNINGS_HEADER.toLowerCase()] = String(found.count);
    })
    .onBeforeHandle({ as: "global" }, ({ set }) => {
      const noted = notes.get(set.headers);
      if (noted?.strict) throw refusal(faultsOf(noted));
    })
    .onAfterHandle({ as: "global" }, ({ responseValue, set }) => warned(set.headers, responseValue));
}

/**
 * Returns what a documented route ignores in a request. Other routes get none: their requests come from a page of ours,
 * or from a service that redirects a browser here, and cannot change.
 */
function unknownTo(route: DescribedRoute | undefined, url: string, body: unknown): Unknown | undefined {
  const about = descriptionOf(route?.hooks.detail);
  if (!route || !about || about.form) return undefined;
  const mark = url.indexOf("?");
  const inQuery = unknownParameters(mark === -1 ? "" : url.slice(mark + 1), route.hooks.query ?? {});
  const schema = about.optional_body ?? route.hooks.body ?? NO_MEMBERS;
  const inBody = unknownIn(body, schema);
  return { members: [...inBody.members, ...inQuery.members], count: inBody.count + inQuery.count };
}

/** Schema of the body of a route that takes none. */
const NO_MEMBERS = { type: "object", properties: {} };

/**
 * Returns an answer with its `warnings` added; undefined where there are none, or the answer is not a JSON object and
 * only the header can say so.
 */
export function warned(headers: object, answer: unknown): object | undefined {
  const warnings = warningsOf(headers);
  if (!warnings || typeof answer !== "object" || answer === null || "warnings" in answer) return undefined;
  return Object.getPrototypeOf(answer) === Object.prototype ? { ...answer, warnings } : undefined;
}

/** Returns the warnings about a request; undefined where there are none. */
export function warningsOf(headers: object): UnknownMember[] | undefined {
  const noted = notes.get(headers);
  return noted && !noted.strict ? noted.members : undefined;
}

/** Returns a validation error with the unknown members among its faults if the client asked for that. */
export function withUnknown(headers: object, error: AppError): AppError {
  const noted = notes.get(headers);
  const { faults } = error.extras;
  if (!noted?.strict || error.code !== "validation_error" || !faults) return error;
  if (faults.some(({ code }) => code === "unknown_member")) return error;
  return refusal([...faults, ...faultsOf(noted)]);
}

function refusal(faults: FieldFault[]): AppError {
  const detail = faults.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new AppError("validation_error", `${detail}.`, { faults });
}

function faultsOf({ members }: Unknown): FieldFault[] {
  return members.map(({ path, code, did_you_mean }) => ({
    path,
    code,
    message:
      did_you_mean === null ? "is not known here" : `is not known here (did you mean ${did_you_mean}?)`,
  }));
}
