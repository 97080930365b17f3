import { isIP } from "node:net";
import { isPublicAddress } from "./guarded-fetch.ts";

const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/** The variables of the environment that name a proxy, which `fetch` goes through without being asked to. */
export function proxyVariables(env: Record<string, string | undefined>): string[] {
  return NAMES.filter((name) => (env[name] ?? "") !== "");
}

/**
 * Returns the option of `fetch` that goes past a proxy for hosts near by: a proxy cannot reach them, and has no business with mail
 * and passwords that are not for the internet.
 */
export function proxyOption(host: string): { proxy?: false } {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  const is_near = isIP(name) === 0 ? !name.includes(".") || LOCAL.test(name) : !isPublicAddress(name);
  return is_near ? { proxy: false } : {};
}

/** Names that no server of the internet has: those of RFC 6761, 6762, 8375 and 9476, the one kept for private use, and one of routers. */
const LOCAL = /\.(localhost|local|internal|alt|home\.arpa|lan)$/;
