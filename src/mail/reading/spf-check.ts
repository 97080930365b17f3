import type { DNSResolver } from "mailauth";
import type { Resolver } from "../../net/dns.ts";

const MAX_MS = 8_000;

/** Returns the SPF result for mail that `ip` sends for `domain`: `pass`, `fail`, … (RFC 7208 §2.6). */
export async function spfResult(
  resolver: Resolver,
  { domain, ip, hostname }: { domain: string; ip: string; hostname: string },
): Promise<string> {
  // Loaded only here, because it is slow to load and a start does not need it.
  const { spf } = await import("mailauth");
  const { status } = await spf({
    sender: `postmaster@${domain}`,
    ip,
    helo: hostname,
    mta: hostname,
    resolver: resolver as DNSResolver,
    maxElapsedTime: MAX_MS,
  });
  return status.result;
}
