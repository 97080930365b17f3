import type { PreContext } from "elysia";
import { allowedMethods } from "./request.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

const MAX_AGE_SECONDS = HOUR_SECONDS;
const ALLOWED_HEADERS =
  "X-API-Key, Authorization, Content-Type, Idempotency-Key, Mailwright-Strict, Prefer, X-Request-Id";
/** Response headers that a page of another origin may read besides those that browsers always allow. */
const EXPOSED_HEADERS =
  "Content-Disposition, Idempotent-Replayed, Location, Mailwright-Warnings, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id";

/**
 * Lets pages of the listed origins call the server with an API key (Fetch standard, "CORS protocol"). Credentials are
 * never allowed: a page elsewhere cannot use the session of its visitor.
 */
export function corsHook(origins: string[], routes: () => { path: string; method: string }[]) {
  const allowed = new Set(origins.map((origin) => new URL(origin).origin));
  return ({ request, set }: Pick<PreContext, "request" | "set">): Response | undefined => {
    set.headers["vary"] = "Origin";
    const origin = request.headers.get("origin") ?? "";
    if (!allowed.has(origin)) return undefined;
    set.headers["access-control-allow-origin"] = origin;
    set.headers["access-control-expose-headers"] = EXPOSED_HEADERS;
    return request.method === "OPTIONS" ? preflight(request, routes()) : undefined;
  };
}

/** Answers a preflight; undefined for an unknown path, which then gets its usual error. */
function preflight(request: Request, routes: { path: string; method: string }[]): Response | undefined {
  const methods = allowedMethods(routes, new URL(request.url).pathname);
  if (methods.length === 0 || !request.headers.has("access-control-request-method")) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": methods.join(", "),
      "access-control-allow-headers": ALLOWED_HEADERS,
      "access-control-max-age": String(MAX_AGE_SECONDS),
    },
  });
}
