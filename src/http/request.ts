import { isIP } from "node:net";
import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { clientNetwork, inNetworks } from "../net/networks.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import { planLimits } from "../resources/billing/plans.ts";
import { DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS, spanWords } from "../lib/durations.ts";

export const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const PROBES = new Set(["/livez", "/readyz"]);
const NO_HOST = "The Host header of this request is missing, there are two, or it names no host.";
/** Host with optional port (RFC 9110 §7.2). Two Host headers arrive joined by a comma, which does not match. */
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])(?::(?:0*[1-9]\d{0,4})?)?$/i;
const MAX_HOST_CHARS = 260;
const SAFE_ID = /^[\w.:-]{1,64}$/;

/** Returns the client's request id if it is short and harmless, otherwise a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id") ?? "";
  return SAFE_ID.test(given) ? given : `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
}

/**
 * Throws `invalid_host` unless a request has exactly one valid Host (RFC 9112 §3.2): otherwise its URL cannot be
 * parsed, part of its path could be taken as the host, or a proxy in front may have read another host. Health checks in
 * HTTP/1.0 may leave it out.
 *
 * For a target in absolute form (RFC 9112 §3.2.2) Bun shows only the path. Nothing here depends on its host.
 */
export function refuseWithoutHost(request: Request): void {
  if (hasHost(request) || (!request.headers.has("host") && PROBES.has(request.url))) return;
  throw new AppError("invalid_host", NO_HOST, {
    fix: "Send the host that the server is asked under, once, such as Host: mail.example.org.",
  });
}

/**
 * Returns the same error as plain text for listeners that answer in text; undefined for a request with a valid host.
 */
export function answerWithoutHost(request: Request): Response | undefined {
  return hasHost(request) ? undefined : new Response(`${NO_HOST}\n`, { status: 400 });
}

/**
 * Returns whether the request has a valid host. The target of a CONNECT parses as a URL with another scheme, which
 * fails here. A host of one or two characters under https is refused, because the router would look for the path at the
 * wrong place.
 */
function hasHost({ url, headers }: Request): boolean {
  const host = headers.get("host");
  const is_one = host === null || (host.length <= MAX_HOST_CHARS && HOST.test(host));
  return is_one && /^http:\/\/|^https:\/\/[^/]{3}/.test(url) && URL.canParse(url);
}

/** Returns whether a request is for this path, with or without a trailing slash. */
export function isFor(request: Request, path: string): boolean {
  const asked = pathOf(request);
  return asked === path || asked === `${path}/`;
}

/** Returns whether the path of a request matches a pattern. */
export function isLike(request: Request, pattern: RegExp): boolean {
  return pattern.test(pathOf(request) ?? "");
}

/** Returns the path of a request without parsing its whole URL, which takes many times as long. */
function pathOf({ url }: Request): string | undefined {
  const start = url.indexOf("/", url.indexOf("://") + "://".length);
  return url.slice(start).split("?", 1)[0];
}

/** What Elysia provides about a request; `server` is null without a socket. */
export interface Served {
  request: Request;
  server: { requestIP: (request: Request) => { address: string } | null } | null;
}

/**
 * Returns the client's address: the peer of the socket or, if that is a trusted proxy, the right-most address in
 * X-Forwarded-For that is not one. Addresses further left may be forged.
 */
export function clientAddress(app: App, { request, server }: Served): string {
  const peer = server?.requestIP(request)?.address ?? "";
  return clientBehind(peer, request.headers.get("x-forwarded-for"), app.config.server.trusted_proxies);
}

export function clientBehind(peer: string, forwarded: string | null, proxies: string[]): string {
  const hops = [...(forwarded ?? "").split(",").map(withoutPort), peer].filter(Boolean);
  return hops.findLast((hop) => !isIP(hop) || !inNetworks(hop, proxies)) ?? peer;
}

/** Returns an address without a port: some proxies add the client's, which differs for each connection. */
function withoutPort(hop: string): string {
  const [, v4, v6] = /^([\d.]+):\d+$|^\[([\da-f:.]+)\](?::\d+)?$/i.exec(hop.trim()) ?? [];
  return v4 ?? v6 ?? hop.trim();
}

/** Counts a request against the rate limit of `key`; throws `rate_limited` when none is left. */
export function refuseOverRate(app: App, key: string, rule: RateRule): void {
  const { ok, retry_after_seconds } = app.limiter.take(key, rule);
  if (ok) return;
  throw new AppError("rate_limited", `More than ${rule.limit} requests in ${spanOf(rule.window_seconds)}.`, {
    retry_after_seconds,
    fix: `Try again in ${spanWords(retry_after_seconds)}.`,
  });
}

/** Counts a request against the calls that an account may make in a minute; throws `rate_limited` when none is left. */
export function refuseOverCallRate(app: App, user: Pick<UserRow, "id" | "plan">): void {
  const limit = planLimits(app.config, user.plan).route_per_minute;
  refuseOverRate(app, `route:${user.id}`, { limit, window_seconds: MINUTE_SECONDS });
}

/** Counts a request against the hourly limit of the client's network; throws `rate_limited` when none is left. */
export function refuseMany(app: App, what: string, served: Served, limit: number): void {
  const client = clientNetwork(clientAddress(app, served));
  refuseOverRate(app, `${what}:${client}`, { limit, window_seconds: HOUR_SECONDS });
}

/** Returns what is stored about the browser that signs in. */
export function browserOf(app: App, served: Served): { client: string; user_agent: string } {
  const user_agent = served.request.headers.get("user-agent") ?? "";
  return { client: clientAddress(app, served), user_agent };
}

function spanOf(seconds: number): string {
  if (seconds === 60) return "a minute";
  if (seconds === DAY_SECONDS) return "a day";
  return seconds === HOUR_SECONDS ? "an hour" : `${seconds} seconds`;
}

/** Returns the methods that routes offer at a path. */
export function allowedMethods(routes: { path: string; method: string }[], path: string): string[] {
  const methods = routes.filter((route) => matches(route.path, path)).map((route) => route.method);
  return [...new Set(methods)];
}

function matches(route: string, path: string): boolean {
  const wanted = route.split("/");
  const given = path.replace(/(?<=.)\/$/, "").split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => part.startsWith(":") || part === given[index])
  );
}
