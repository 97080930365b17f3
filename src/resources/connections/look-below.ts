import { isModelKind } from "./kinds.ts";
import { PingFault, type PingTarget } from "./ping.ts";
import { apiPingOf, type ApiPing, pingApi } from "./ping-api.ts";

/** Refusals which show that an interface is at the address that was asked. */
const HEARD = new Set(["invalid_credentials", "no_credential", "forbidden", "rate_limited"]);

/**
 * After a fault of something that is no such interface: looks below the address, since many leave out the end of one,
 * and throws a fault that suggests it, or else the first one.
 */
export async function lookBelow(target: PingTarget, error: PingFault): Promise<never> {
  const below = belowOf(target);
  if (below === undefined) throw error;
  const answer = await pingApi({ ...target, base_url: below.base_url }, below.ping).catch(
    (second: unknown) => second,
  );
  if (answer instanceof Error && !(answer instanceof PingFault)) throw answer;
  if (answer instanceof PingFault && !HEARD.has(answer.fault.code)) throw error;
  const { http_status } = error.fault;
  throw new PingFault(
    "bad_response",
    `${target.name} has its interface not at this address, but at ${below.base_url}. Use that as the base URL.`,
    http_status,
    { suggested_base_url: below.base_url },
  );
}

function belowOf({ kind, base_url }: PingTarget): { base_url: string; ping: ApiPing } | undefined {
  if (!isModelKind(kind) || kind === "demo") return undefined;
  const url = new URL(base_url);
  const path = url.pathname.replace(/(?<!\/)\/+$/, "");
  if (path.endsWith("/v1") || apiPingOf(kind).without !== undefined) return undefined;
  url.pathname = `${path}/v1`;
  return { base_url: url.href, ping: apiPingOf(kind) };
}
