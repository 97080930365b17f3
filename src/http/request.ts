import { isIP } from "node:net";
import { inNetworks } from "../lib/networks.ts";

const SAFE_ID = /^[\w.:-]{1,64}$/;

/** The client's own request id if it is short and harmless, else a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id") ?? "";
  return SAFE_ID.test(given) ? given : `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
}

/**
 * Who sent a request: the peer of the socket or, if that is one of our own proxies, the right-most address of
 * X-Forwarded-For that is not. What stands further left may be anybody's invention.
 */
export function clientAddress(peer: string, forwarded: string | null, proxies: string[]): string {
  const hops = [...(forwarded ?? "").split(",").map((hop) => hop.trim()), peer].filter(Boolean);
  return hops.findLast((hop) => !isIP(hop) || !inNetworks(hop, proxies)) ?? peer;
}

/** The methods that some route offers at a path. */
export function allowedMethods(routes: { path: string; method: string }[], path: string): string[] {
  const methods = routes.filter((route) => matches(route.path, path)).map((route) => route.method);
  return [...new Set(methods)];
}

function matches(route: string, path: string): boolean {
  const wanted = route.split("/");
  const given = path.replace(/\/$/, "").split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => part.startsWith(":") || part === given[index])
  );
}
