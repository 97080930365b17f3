import { isIP } from "node:net";
import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { clientNetwork, inNetworks } from "../net/networks.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";

export const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const PROBES = new Set(["/livez", "/readyz"]);
const NO_HOST = "The Host header of this request is missing, there are two, or it names no host.";
/**
 * A name or an address, and a port (RFC 9110 §7.2), in the characters that hosts have. The values of two fields come put
 * together by a comma, so they do not fit.
 */
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])(?::(?:0*[1-9]\d{0,4})?)?$/i;
const MAX_HOST_CHARS = 260;
const SAFE_ID = /^[\w.:-]{1,64}$/;

/** The client's own request id if it is short and harmless, else a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id") ?? "";
  return SAFE_ID.test(given) ? given : `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
}

/**
 * Throws `invalid_host` for a request without exactly one Host that is one (RFC 9112 §3.2): its URL cannot be read, or
 * it would be routed by a part of its path, or whoever stands in front of us has read another host. A health check may
 * speak HTTP/1.0, which knows no Host.
 *
 * Bun shows the path alone of a target that holds a host itself (RFC 9112 §3.2.2). Nothing here depends on that host.
 */
export function refuseWithoutHost(request: Request): void {
  if (hasHost(request) || (!request.headers.has("host") && PROBES.has(request.url))) return;
  throw new AppError("invalid_host", NO_HOST, {
    fix: "Send the host that the server is asked under, once, such as Host: mail.example.org.",
  });
}

/** The same refusal for a door that answers in plain text; undefined for a request with a host. */
export function answerWithoutHost(request: Request): Response | undefined {
  return hasHost(request) ? undefined : new Response(`${NO_HOST}\n`, { status: 400 });
}

/**
 * The target of a CONNECT is an authority, which reads as a URL of another scheme. With https a host of one or two
 * characters is none to us: the router would look for the path behind it.
 */
function hasHost({ url, headers }: Request): boolean {
  const host = headers.get("host");
  const isOne = host === null || (host.length <= MAX_HOST_CHARS && HOST.test(host));
  return isOne && /^http:\/\/|^https:\/\/[^/]{3}/.test(url) && URL.canParse(url);
}

/** Whether a request is for this path, with or without a slash at its end. */
export function isFor(request: Request, path: string): boolean {
  const asked = pathOf(request);
  return asked === path || asked === `${path}/`;
}

/** Whether a request is for a path like this. */
export function isLike(request: Request, pattern: RegExp): boolean {
  return pattern.test(pathOf(request) ?? "");
}

/** Without the rest of its URL, which takes many times as long to read. */
function pathOf({ url }: Request): string | undefined {
  const start = url.indexOf("/", url.indexOf("://") + "://".length);
  return url.slice(start).split("?", 1)[0];
}

/** What Elysia tells of a request; `server` is null where there is no socket. */
export interface Served {
  request: Request;
  server: { requestIP: (request: Request) => { address: string } | null } | null;
}

/**
 * Who sent a request: the peer of the socket or, if that is one of our own proxies, the right-most address of
 * X-Forwarded-For that is not. What stands further left may be anybody's invention.
 */
export function clientAddress(app: App, { request, server }: Served): string {
  const peer = server?.requestIP(request)?.address ?? "";
  return clientBehind(peer, request.headers.get("x-forwarded-for"), app.config.server.trusted_proxies);
}

export function clientBehind(peer: string, forwarded: string | null, proxies: string[]): string {
  const hops = [...(forwarded ?? "").split(",").map(withoutPort), peer].filter(Boolean);
  return hops.findLast((hop) => !isIP(hop) || !inNetworks(hop, proxies)) ?? peer;
}

/** Some proxies name the client's port as well, which is another one for each connection. */
function withoutPort(hop: string): string {
  const [, v4, v6] = /^([\d.]+):\d+$|^\[([\da-f:.]+)\](?::\d+)?$/i.exec(hop.trim()) ?? [];
  return v4 ?? v6 ?? hop.trim();
}

/** Takes one of the requests that `key` may make; throws `rate_limited` when there is none left. */
export function refuseOverRate(app: App, key: string, rule: RateRule): void {
  const { ok, retry_after_seconds } = app.limiter.take(key, rule);
  if (ok) return;
  throw new AppError("rate_limited", `More than ${rule.limit} requests in ${spanOf(rule.window_seconds)}.`, {
    retry_after_seconds,
    fix: `Try again in ${retry_after_seconds} seconds.`,
  });
}

/** The same for whoever calls from the client's network, by the hour. */
export function refuseMany(app: App, what: string, served: Served, limit: number): void {
  const client = clientNetwork(clientAddress(app, served));
  refuseOverRate(app, `${what}:${client}`, { limit, window_seconds: HOUR_SECONDS });
}

/** What is noted of the browser that signs in. */
export function browserOf(app: App, served: Served): { client: string; user_agent: string } {
  const user_agent = served.request.headers.get("user-agent") ?? "";
  return { client: clientAddress(app, served), user_agent };
}

function spanOf(seconds: number): string {
  if (seconds === 60) return "a minute";
  if (seconds === DAY_SECONDS) return "a day";
  return seconds === HOUR_SECONDS ? "an hour" : `${seconds} seconds`;
}

/** The methods that some route offers at a path. */
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
