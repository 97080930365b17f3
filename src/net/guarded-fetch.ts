import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { codeOf } from "../errors.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { isNoRecord } from "./dns.ts";
import { inRanges, type Range } from "./networks.ts";
import { timeoutSignal } from "../lib/wait-limit.ts";

const ADDRESS_CACHE_MS = 30_000;
const MAX_CACHED_HOSTS = 1_000;
const MAX_ADDRESSES_TRIED = 3;
/** The time limit of a caller that sets no signal of its own. */
const DEFAULT_WAIT_MS = 60_000;

/**
 * Addresses that are never dialled, because they are not on the public internet (IANA special-purpose registries, RFC
 * 6890).
 */
const SPECIAL_V4 = subnets(
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
);
const SPECIAL_V6 = subnets("2001::/23 2001:db8::/32 2002::/16 3fff::/20");
/** Global unicast (RFC 4291 §2.4); all other addresses are loopback, private, link-local, multicast or unassigned. */
const GLOBAL_V6 = subnets("2000::/3");
const NAT64 = subnets("64:ff9b::/96"); // RFC 6052 §2.1: the last 32 bits are an IPv4 address

/** The code of the error for an answer that is packed. */
export const PACKED = "EPACKED";
const CONNECT_FAULTS = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL"]);
export type SafeFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface EgressRules {
  /** Like `resolve` of node:dns/promises. */
  resolve: (name: string, rrtype: "A" | "AAAA") => Promise<string[]>;
  /** Operator's exceptions: networks, addresses or host names. */
  allow: string[];
  /** The setting that holds `allow`, to be named in errors; `egress.allow` if not given. */
  setting?: string;
  /** A certificate authority (PEM) to trust in place of the built-in ones. */
  ca?: string;
}

/**
 * Addresses at which a host may be dialled; `plain_http` says that the operator allowed all of it by name or network.
 */
export interface DialTarget {
  addresses: string[];
  plain_http: boolean;
}

/** Thrown for a host that this server may not connect to. The message names the host, the address and the mend. */
export class BlockedAddressError extends Error {
  readonly host: string;
  /** Empty when the scheme and not the address was refused. */
  readonly address: string;

  constructor(host: string, address: string, message: string) {
    super(message);
    this.name = "BlockedAddressError";
    this.host = host;
    this.address = address;
  }
}

/**
 * Creates a `fetch` for URLs that users enter: https only (plain http where the operator allowed it). The name is
 * looked up once, every address is checked, and the connection goes to a checked address with the name in Host and in
 * the TLS handshake. Redirects are returned, not followed. Throws BlockedAddressError, or the error of a failed fetch
 * or lookup.
 */
export function createSafeFetch(rules: EgressRules): SafeFetch {
  const targetOf = targetFor(rules);
  return async (url, init = {}) => {
    const original = new URL(url);
    const signal = init.signal ?? timeoutSignal(DEFAULT_WAIT_MS);
    const host = hostOf(original);
    const target = await unlessAborted(Promise.resolve(targetOf(original)), signal);
    const response = await dial(original, target.addresses, {
      ...init,
      signal,
      redirect: "manual",
      // Only the signal limits the time: Bun's own idle limit would end a slow model after five minutes.
      timeout: false,
      // The runtime unpacks all that has arrived at once, before anybody could say how much is wanted of it.
      decompress: false,
      headers: headersFor(init.headers, original.host),
      tls: { serverName: isIP(host) === 0 ? host : "", ...(rules.ca === undefined ? {} : { ca: rules.ca }) },
    });
    await refusePacked(response);
    Object.defineProperty(response, "url", { value: original.href });
    return response;
  };
}

/**
 * Returns a function that looks up where a URL may be dialled by `rules`, with a cache: it returns a promise only where
 * it has to. Throws BlockedAddressError.
 */
export function targetFor(rules: EgressRules): (url: URL) => DialTarget | Promise<DialTarget> {
  const targetOf = cachedTargets(rules);
  return (url) => {
    if (url.protocol !== "https:" && url.protocol !== "http:") throw insecure(url, rules);
    const refuseIfPlain = (target: DialTarget): DialTarget => {
      if (url.protocol === "http:" && !target.plain_http) throw insecure(url, rules);
      return target;
    };
    const target = targetOf(hostOf(url));
    return target instanceof Promise ? target.then(refuseIfPlain) : refuseIfPlain(target);
  };
}

/** Looks up a host and checks every address. Throws BlockedAddressError if one is special and not allowed. */
export async function judgeHost(host: string, rules: EgressRules): Promise<DialTarget> {
  const addresses = await addressesOf(host, rules);
  const allowed = addresses.map((address) => allowedByOperator(host, address, rules.allow));
  const blocked = addresses.find((address, index) => allowed[index] !== true && !isPublicAddress(address));
  if (blocked !== undefined) {
    const shown = blocked === host ? `The address ${host}` : `The address ${blocked} of ${host}`;
    const setting = rules.setting ?? "egress.allow";
    throw new BlockedAddressError(
      host,
      blocked,
      `${shown} is not on the public internet, so no connection is made to it. If it is meant, the operator of this server can add "${host}" to ${setting}.`,
    );
  }
  return { addresses, plain_http: allowed.every(Boolean) };
}

/** Returns whether an address is on the public internet; an IPv4 address inside an IPv6 one is checked as such. */
export function isPublicAddress(ip: string): boolean {
  if (isIP(ip) === 0) {
    return false;
  }
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") {
    return !inRanges(address, SPECIAL_V4);
  }
  if (inRanges(address, NAT64)) {
    return isPublicAddress(address.toByteArray().slice(12).join("."));
  }
  return inRanges(address, GLOBAL_V6) && !inRanges(address, SPECIAL_V6);
}

/**
 * Returns whether the operator made an exception for this host or address. Entries: `10.0.5.0/24`, `::1`, `ollama.lan`.
 */
export function allowedByOperator(host: string, ip: string, allow: string[]): boolean {
  const name = plainName(host);
  const address = isIP(ip) === 0 ? null : ipaddr.process(ip);
  return allow.some((entry) => {
    if (ipaddr.isValidCIDR(entry)) {
      return address !== null && inRanges(address, subnets(entry));
    }
    if (isIP(entry) !== 0) {
      return address !== null && ipaddr.process(entry).toNormalizedString() === address.toNormalizedString();
    }
    return plainName(entry) === name;
  });
}

function subnets(list: string): Range[] {
  return list.split(" ").map((cidr) => ipaddr.parseCIDR(cidr));
}

function plainName(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

function hostOf(url: URL): string {
  return plainName(url.hostname.replace(/^\[|\]$/g, ""));
}

interface Known {
  /** A promise until the check is done. */
  target: DialTarget | Promise<DialTarget>;
  until: number;
}

/** Caches `judgeHost` for a short time; simultaneous callers share one lookup. */
function cachedTargets(rules: EgressRules): (host: string) => DialTarget | Promise<DialTarget> {
  const known = new Map<string, Known>();
  return (host) => {
    const cached = known.get(host);
    if (cached !== undefined && cached.until > performance.now()) {
      return cached.target;
    }
    const target = judgeHost(host, rules);
    const entry: Known = { target, until: performance.now() + ADDRESS_CACHE_MS };
    known.delete(host);
    known.set(host, entry);
    target.then(
      (judged) => (entry.target = judged),
      () => known.delete(host),
    );
    const [oldest] = known.keys();
    if (known.size > MAX_CACHED_HOSTS && oldest !== undefined) {
      known.delete(oldest);
    }
    return target;
  };
}

async function addressesOf(host: string, rules: EgressRules): Promise<string[]> {
  if (isIP(host) !== 0) {
    return [host];
  }
  if (host === "localhost" || host.endsWith(".localhost")) {
    return ["127.0.0.1"]; // RFC 6761 §6.3: never asked of a name server
  }
  const answers = await Promise.allSettled([rules.resolve(host, "A"), rules.resolve(host, "AAAA")]);
  const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  if (addresses.length > 0) {
    return addresses;
  }
  if (rules.allow.some((entry) => plainName(entry) === host)) {
    // A name that the operator allowed may be in the hosts file only, as in a container.
    return (await lookup(host, { all: true })).map((answer) => answer.address);
  }
  throw lookupError(host, answers);
}

/** Returns the more telling failure: a server that failed, rather than a record that does not exist. */
function lookupError(host: string, answers: PromiseSettledResult<string[]>[]): unknown {
  const reasons: unknown[] = answers.flatMap((answer) =>
    answer.status === "rejected" ? [answer.reason] : [],
  );
  const missing = Object.assign(new Error(`The host name ${host} has no address.`), { code: "ENODATA" });
  return reasons.find((reason) => !isNoRecord(reason)) ?? reasons[0] ?? missing;
}

function insecure(url: URL, rules: EgressRules): BlockedAddressError {
  const setting = rules.setting ?? "egress.allow";
  return new BlockedAddressError(
    hostOf(url),
    "",
    `Only https is used to reach ${url.host || "a server"}. Use an https:// address; plain http is for hosts that the operator of this server added to ${setting}.`,
  );
}

function headersFor(headers: RequestInit["headers"], host: string): Headers {
  const result = new Headers(headers);
  result.set("host", host);
  result.set("accept-encoding", "identity");
  return result;
}

/** Throws for an answer that is packed although none was asked for (RFC 9110 §12.5.3): a few bytes can be gigabytes. */
async function refusePacked(response: Response): Promise<void> {
  const packed = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (packed === "" || packed === "identity") return;
  await response.body?.cancel();
  throw Object.assign(new Error(`The answer is packed (Content-Encoding: ${packed.slice(0, 40)}).`), {
    code: PACKED,
  });
}

/** Tries the next address only if no connection was established, so nothing is ever sent twice. */
async function dial(url: URL, addresses: string[], init: BunFetchRequestInit): Promise<Response> {
  const replayable = !(init.body instanceof ReadableStream);
  const tries = addresses.slice(0, replayable ? MAX_ADDRESSES_TRIED : 1);
  for (const [index, address] of tries.entries()) {
    const pinned = new URL(url);
    pinned.hostname = isIP(address) === 6 ? `[${address}]` : address;
    try {
      // A proxy of the environment could not reach what is near, and has no business with it.
      return await fetch(pinned, isPublicAddress(address) ? init : { ...init, proxy: false });
    } catch (error) {
      if (!CONNECT_FAULTS.has(codeOf(error)) || index === tries.length - 1) {
        throw error;
      }
    }
  }
  throw new Error(`no address to dial for ${url.hostname}`);
}
