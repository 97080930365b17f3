import type { Db, Write } from "../../db/database.ts";
import type { Resolver } from "../../net/dns.ts";
import type { SafeFetch } from "../../net/guarded-fetch.ts";
import { refuseOwnFault } from "../../lib/own-faults.ts";
import { storedJson } from "../../lib/stored-json.ts";
import type { Log } from "../../lib/log.ts";
import { messageOf } from "../../errors.ts";
import { withShortBlanks } from "../../lib/short-blanks.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

/**
 * An MTA-STS policy (RFC 8461): which servers of a domain may get its mail. `none` is also used where there is no
 * policy.
 */
export interface TransportPolicy {
  mode: "enforce" | "testing" | "none";
  /** Host names, or `*.` with a domain. */
  mx: string[];
}

export type PolicyOf = (domain: string) => Promise<TransportPolicy>;

const NO_POLICY: TransportPolicy = { mode: "none", mx: [] };
const FETCH_MS = 15_000;
const MAX_POLICY_BYTES = 65_536;
/** How long a failed fetch is not repeated (RFC 8461 §3.3). */
const RETRY_SECONDS = 300;
const MAX_REMEMBERED_FAILURES = 1_000;

/** Returns whether a policy that restricts anything lists this server. */
export async function isListed(host: string, policy: TransportPolicy): Promise<boolean> {
  if (policy.mode === "none") return true;
  const { validateMx } = await import("mailauth/lib/mta-sts");
  return validateMx(host, { ...policy }).valid;
}

interface Parts {
  db: Db;
  write: Write;
  resolver: Resolver;
  fetch: SafeFetch;
  log: Log;
  /** Unix seconds. A clock that is wrong for a while must neither end a policy nor keep one. */
  calmNow: () => number;
}

/**
 * Creates a function that finds the policy of a domain: the fetched one while it is valid, unless the DNS names
 * another. Without an answer the known policy stays, and none holds where none is known. Throws NoHandlesError if
 * nobody could be asked.
 */
export function createPolicyFinder(parts: Parts): PolicyOf {
  const asking = new Map<string, Promise<TransportPolicy>>();
  const failed = new Map<string, number>();
  return (domain) => {
    const before = asking.get(domain);
    if (before !== undefined) return before;
    const finding = find(parts, failed, domain).finally(() => asking.delete(domain));
    asking.set(domain, finding);
    return finding;
  };
}

async function find(parts: Parts, failed: Map<string, number>, domain: string): Promise<TransportPolicy> {
  const known = await knownPolicy(parts, domain);
  // Loaded at first use: a server that only relays never needs it.
  const { resolvePolicy } = await import("mailauth/lib/mta-sts");
  const id = await resolvePolicy(domain, { resolver: parts.resolver as never, strict: true }).catch(
    (error: unknown) => {
      refuseOwnFault(error);
      return false;
    },
  );
  if (typeof id !== "string" || id === known?.policy_id) return known ?? NO_POLICY;
  const tried_at = failed.get(`${domain} ${id}`);
  if (tried_at !== undefined && parts.calmNow() - tried_at < RETRY_SECONDS) return known ?? NO_POLICY;
  let policy: Awaited<ReturnType<typeof fetchPolicy>>;
  try {
    policy = await fetchPolicy(parts.fetch, domain);
  } catch (error) {
    refuseOwnFault(error);
    parts.log.info({ domain, err: messageOf(error) }, "the MTA-STS policy of a domain cannot be had");
    remember(failed, `${domain} ${id}`, parts.calmNow());
    return known ?? NO_POLICY;
  }
  failed.delete(`${domain} ${id}`);
  await keep(parts, { domain, id, ...policy });
  return policy;
}

async function knownPolicy({ db, calmNow }: Parts, domain: string) {
  const row = await db
    .selectFrom("transport_policies")
    .select(["policy_id", "mode", "mx"])
    .where("domain", "=", domain)
    .where("expires", ">", calmNow())
    .executeTakeFirst();
  // One that is damaged is fetched anew.
  const mx = row && storedJson<string[] | null>(row.mx, null);
  return row && mx ? { ...row, mx } : undefined;
}

async function fetchPolicy(fetch: SafeFetch, domain: string): Promise<TransportPolicy & { max_age: number }> {
  const signal = timeoutSignal(FETCH_MS);
  const response = await fetch(`https://mta-sts.${domain}/.well-known/mta-sts.txt`, { signal });
  // Redirects are not followed (RFC 8461 §3.3).
  if (response.status !== 200) throw new Error(`the answer is ${response.status}`);
  // The type must be text/plain (RFC 8461 §3.2): a site where anybody can upload other files must not speak for the
  // domain.
  const type = response.headers.get("content-type") ?? "";
  if (!/^text\/plain\s*(;|$)/i.test(type)) throw new Error(`the answer is ${type || "of no type"}`);
  const { parsePolicy } = await import("mailauth/lib/mta-sts");
  const {
    mode,
    mx = [],
    maxAge = 0,
  } = parsePolicy(withShortBlanks(await boundedText(response)), { strict: true });
  return { mode, mx, max_age: maxAge };
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_POLICY_BYTES) throw new Error(`the answer is larger than ${MAX_POLICY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function keep(
  { write, calmNow }: Parts,
  policy: TransportPolicy & { domain: string; id: string; max_age: number },
): Promise<void> {
  const { domain, id: policy_id, mode } = policy;
  const row = { policy_id, mode, mx: JSON.stringify(policy.mx), expires: calmNow() + policy.max_age };
  await write(async (tx) => {
    await tx.deleteFrom("transport_policies").where("expires", "<=", calmNow()).execute();
    await tx
      .insertInto("transport_policies")
      .values({ domain, ...row })
      .onConflict((conflict) => conflict.column("domain").doUpdateSet(row))
      .execute();
  });
}

function remember(failed: Map<string, number>, key: string, moment: number): void {
  const [oldest] = failed.keys();
  if (failed.size >= MAX_REMEMBERED_FAILURES && oldest !== undefined) failed.delete(oldest);
  failed.set(key, moment);
}
