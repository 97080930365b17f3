import { Elysia } from "elysia";
import { AppError, type FieldFault } from "../errors.ts";
import { descriptionOf } from "./describe.ts";
import type { DescribedRoute } from "./openapi-operation.ts";
import { type Unknown, unknownIn, type UnknownMember, unknownParameters } from "./unknown-members.ts";

const WARNINGS_HEADER = "Mailwright-Warnings";
const STRICT_HEADER = "Mailwright-Strict";

const bodies = new WeakMap<Request, unknown>();
/** By the headers of the answer, which are at hand wherever one is written. */
const notes = new WeakMap<object, Noted>();

interface Noted extends Unknown {
  /** Whether who asks wants to be refused rather than warned. */
  strict: boolean;
}

/** Keeps what a request said before anything is left out of it. */
export function keepSent<Body>(request: Request, body: Body): Body {
  bodies.set(request, body);
  return body;
}

/** Finds, for all routes, what a request says that nobody looks at; with `Mailwright-Strict: 1` that is refused. */
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

/** What is unknown to a route in the interface. A page of ours, or of another service, that sends a browser here knows no better. */
function unknownTo(route: DescribedRoute | undefined, url: string, body: unknown): Unknown | undefined {
  const about = descriptionOf(route?.hooks.detail);
  if (!route || !about || about.form) return undefined;
  const mark = url.indexOf("?");
  const inQuery = unknownParameters(mark === -1 ? "" : url.slice(mark + 1), route.hooks.query ?? {});
  const schema = about.optional_body ?? route.hooks.body ?? NO_MEMBERS;
  const inBody = unknownIn(body, schema);
  return { members: [...inBody.members, ...inQuery.members], count: inBody.count + inQuery.count };
}

/** What a route that takes no body knows. */
const NO_MEMBERS = { type: "object", properties: {} };

/** An answer with what its request said in vain. A list, or no JSON, has no place for it but the header. */
export function warned(headers: object, answer: unknown): object | undefined {
  const warnings = warningsOf(headers);
  if (!warnings || typeof answer !== "object" || answer === null || "warnings" in answer) return undefined;
  return Object.getPrototypeOf(answer) === Object.prototype ? { ...answer, warnings } : undefined;
}

/** Undefined where there is nothing to warn of. */
export function warningsOf(headers: object): UnknownMember[] | undefined {
  const noted = notes.get(headers);
  return noted && !noted.strict ? noted.members : undefined;
}

/** A refusal of what a request got wrong, with what was unknown among its faults where its sender wants to hear of that. */
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
