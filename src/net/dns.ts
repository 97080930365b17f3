import { asciiHost } from "../lib/web-address.ts";
import { type DnsServer, exchange, type Reply } from "./dns-exchange.ts";
import { countLookUp, type DnsCounts } from "./dns-standing.ts";
import { createNameServers } from "./name-servers.ts";
import { isOutOfHandles } from "../lib/own-faults.ts";
import { type DnsAnswers, type DnsErrorCode, type DnsOutcome, readReply } from "./dns-reply.ts";

/**
 * Like `node:dns` `promises.resolve`: rejects with an error whose `code` is a DnsErrorCode. If this machine itself
 * could not ask, the error's cause says so.
 */
export type Resolver = <T extends keyof DnsAnswers>(
  name: string,
  rrtype: T,
  options?: LookUpOptions,
) => Promise<DnsAnswers[T]>;

interface LookUpOptions {
  /** Skips the cache: for an operator who has just changed a record. */
  fresh?: boolean;
  /** Accepts only records that the name server validated by DNSSEC; others are EINSECURE. */
  validated?: boolean;
}

export interface ResolverOptions {
  /** See `createNameServers`. */
  servers: string[];
  /** The system's resolv.conf. */
  system_file?: string;
  /** Longest wait of one lookup, over all servers and attempts. */
  timeout_ms?: number;
  /** Queries at the same time. */
  max_in_flight?: number;
  /** Where to count answered lookups; see `dns-standing.ts`. */
  counts?: DnsCounts;
  /** The clock that ages the cache, in milliseconds. */
  now?: () => number;
}

const DEFAULT_TIMEOUT_MS = 5_000;
const ROUNDS = 2;
/** A thousand webhook endpoints may each wait for two kinds of address at once, and mail needs room beside them. */
const DEFAULT_MAX_IN_FLIGHT = 4_000;
const MAX_CACHE_ENTRIES = 5_000;
const MAX_CACHED_BYTES = 8_192;

/**
 * Creates a resolver that queries the DNS itself, because the runtime returns the 255-octet strings of one TXT record
 * as if they were several records. Answers are cached for their TTL, and identical questions share one query.
 */
export function createResolver(options: ResolverOptions): Resolver {
  const now = options.now ?? (() => performance.now());
  const servers = createNameServers(options.servers, options.system_file);
  const max_in_flight = options.max_in_flight ?? DEFAULT_MAX_IN_FLIGHT;
  const cache = new Map<string, { outcome: DnsOutcome; expires_at: number }>();
  const inFlight = new Map<string, Promise<DnsOutcome>>();

  const lookUp = async (key: string, name: string, rrtype: keyof DnsAnswers): Promise<DnsOutcome> => {
    const asked = ask(servers, { name, rrtype }, options.timeout_ms ?? DEFAULT_TIMEOUT_MS);
    const outcome = await asked.catch((cause: unknown) => {
      if (options.counts && !isOutOfHandles(cause)) countLookUp(options.counts, name, null);
      throw dnsError("ESERVFAIL", name, rrtype, { cause });
    });
    if (options.counts) countLookUp(options.counts, name, outcome);
    if (outcome.ttl_seconds > 0 && outcome.bytes <= MAX_CACHED_BYTES) {
      cache.delete(key);
      for (const oldest of cache.keys()) {
        if (cache.size < MAX_CACHE_ENTRIES) break;
        cache.delete(oldest);
      }
      cache.set(key, { outcome, expires_at: now() + outcome.ttl_seconds * 1_000 });
    }
    return outcome;
  };

  return async <T extends keyof DnsAnswers>(
    asked: string,
    rrtype: T,
    { fresh = false, validated = false }: LookUpOptions = {},
  ): Promise<DnsAnswers[T]> => {
    const name = toDnsName(asked);
    if (name === undefined) throw dnsError("EBADNAME", asked, rrtype);
    const key = `${rrtype} ${name}`;
    const given = (outcome: DnsOutcome): DnsAnswers[T] => {
      if (validated && !outcome.validated && "values" in outcome) throw dnsError("EINSECURE", name, rrtype);
      return unwrap(outcome, name, rrtype);
    };
    const cached = cache.get(key);
    if (cached && cached.expires_at > now() && !fresh) return given(cached.outcome);
    let pending = inFlight.get(key);
    if (!pending) {
      if (inFlight.size >= max_in_flight) throw dnsError("ESERVFAIL", name, rrtype);
      pending = lookUp(key, name, rrtype).finally(() => inFlight.delete(key));
      inFlight.set(key, pending);
    }
    return given(await pending);
  };
}

/** Returns the `code` of a resolver's error; undefined for anything else that was thrown. */
export function dnsErrorCode(error: unknown): DnsErrorCode | undefined {
  return error instanceof Error && "code" in error && "rrtype" in error
    ? (error.code as DnsErrorCode)
    : undefined;
}

/** Returns whether the DNS answered that there is no such name or record, as opposed to not answering. */
export function isNoRecord(error: unknown): boolean {
  const code = dnsErrorCode(error);
  return code === "ENODATA" || code === "ENOTFOUND" || code === "EBADNAME";
}

/** Returns whether none of our name servers was reached, which says nothing about the name in question. */
export function isUnreached(error: unknown): boolean {
  return dnsErrorCode(error) !== undefined && (error as { unreached?: boolean }).unreached === true;
}

/**
 * Returns a name in lower case and A-labels without root dot; undefined when no such name can exist (RFC 1035 §2.3.4).
 */
function toDnsName(asked: string): string | undefined {
  const ascii = /^[\x21-\x7e]+$/.test(asked) ? asked : asciiHost(asked);
  const name = ascii.toLowerCase().replace(/\.$/, "");
  const fits = name.length <= 253 && name.split(".").every((label) => label.length > 0 && label.length <= 63);
  return fits ? name : undefined;
}

async function ask(
  named: () => DnsServer[],
  question: { name: string; rrtype: keyof DnsAnswers },
  timeout_ms: number,
): Promise<DnsOutcome> {
  const servers = named();
  const try_ms = Math.ceil(timeout_ms / (servers.length * ROUNDS));
  let failure: DnsErrorCode = "ETIMEOUT";
  let unreached = true;
  for (let attempt = 0; attempt < servers.length * ROUNDS; attempt++) {
    const server = servers[attempt % servers.length];
    const reply: Reply = server ? await exchange(server, question, try_ms) : "UNREACHED";
    const outcome = typeof reply === "string" ? reply : readReply(reply, question);
    if (typeof outcome !== "string") return outcome;
    unreached &&= outcome === "UNREACHED";
    // The code that `node:dns` gives when no server is reached.
    failure = outcome === "UNREACHED" ? "ESERVFAIL" : outcome;
  }
  const nothing = { error: failure, validated: false, ttl_seconds: 0, bytes: 0 };
  return unreached ? { ...nothing, unreached } : nothing;
}

/** Every caller gets its own copy: some sort or annotate what they are given. */
function unwrap<T extends keyof DnsAnswers>(outcome: DnsOutcome, name: string, rrtype: T): DnsAnswers[T] {
  if ("error" in outcome)
    throw Object.assign(dnsError(outcome.error, name, rrtype), { unreached: outcome.unreached === true });
  return structuredClone(outcome.values) as DnsAnswers[T];
}

function dnsError(code: DnsErrorCode, name: string, rrtype: string, options?: ErrorOptions): Error {
  const error = new Error(`DNS lookup of ${rrtype} ${name} failed: ${code}`, options);
  return Object.assign(error, { code, name, rrtype });
}
