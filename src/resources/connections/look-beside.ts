import { isModelKind } from "./kinds.ts";
import { type Finding, PingFault, type PingTarget } from "./ping.ts";
import { apiPingOf, pingApi } from "./ping-api.ts";
import { pingMcp } from "./ping-mcp.ts";

/** Refusals which show that an interface is at the address that was asked. */
const HEARD = new Set(["invalid_credentials", "no_credential", "needs_auth", "forbidden", "rate_limited"]);

/**
 * After a fault of something that is no such interface: looks below the address, since many leave out the end of one,
 * and throws a fault that suggests it, or else the first one.
 */
export async function lookBelow(target: PingTarget, error: PingFault): Promise<never> {
  const below = belowOf(target);
  if (below === undefined) throw error;
  const answer = await below.ping({ ...target, base_url: below.base_url }).catch((second: unknown) => second);
  if (answer instanceof Error && !(answer instanceof PingFault)) throw answer;
  if (answer instanceof PingFault && !HEARD.has(answer.fault.code)) throw error;
  const { http_status } = error.fault;
  throw new PingFault(
    "bad_response",
    `${target.name} has its interface not at this address, but at ${below.base_url}. Use that address.`,
    http_status,
    { suggested_base_url: below.base_url },
  );
}

interface Below {
  base_url: string;
  ping: (target: PingTarget) => Promise<Finding>;
}

/** The end that the addresses of a kind mostly have, where this one lacks it. */
function belowOf({ kind, base_url }: PingTarget): Below | undefined {
  if (kind === "mcp") return endingIn(base_url, "/mcp", pingMcp);
  if (!isModelKind(kind) || kind === "demo") return undefined;
  const ping = apiPingOf(kind);
  if (ping.without !== undefined) return undefined;
  return endingIn(base_url, "/v1", (target) => pingApi(target, ping));
}

function endingIn(base_url: string, end: string, ping: Below["ping"]): Below | undefined {
  const url = new URL(base_url);
  const path = url.pathname.replace(/(?<!\/)\/+$/, "");
  if (path.endsWith(end)) return undefined;
  url.pathname = `${path}${end}`;
  return { base_url: url.href, ping };
}
