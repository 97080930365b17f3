import { isModelKind } from "./kinds.ts";
import { type Finding, PingFault, type PingTarget } from "./ping.ts";
import { apiPingOf, pingApi } from "./ping-api.ts";
import { pingMcp } from "./ping-mcp.ts";

/** Refusals which show that an interface is at the address that was asked. */
const HEARD = new Set(["invalid_credentials", "no_credential", "needs_auth", "forbidden", "rate_limited"]);

/** Where calls of a model go, at the end of the addresses that providers print in their examples. */
const CALL = /\/(?:chat\/completions|completions|messages|models|responses)$/;

/**
 * After a fault of something that is no such interface: looks beside the address, since many leave out the end of one, or paste that
 * of a call, and throws a fault that suggests where it is, or else the first one.
 */
export async function lookBeside(target: PingTarget, error: PingFault): Promise<never> {
  for (const { base_url, ping } of besides(target)) {
    const answer = await ping({ ...target, base_url }).catch((second: unknown) => second);
    if (answer instanceof Error && !(answer instanceof PingFault)) throw answer;
    if (answer instanceof PingFault && !HEARD.has(answer.fault.code)) continue;
    throw new PingFault(
      "bad_response",
      `${target.name} has its interface not at this address, but at ${base_url}. Use that address.`,
      error.fault.http_status,
      { suggested_base_url: base_url },
    );
  }
  throw error;
}

interface Beside {
  base_url: string;
  ping: (target: PingTarget) => Promise<Finding>;
}

/** The addresses that may be meant: without the end that is that of a call, and with the one that those of a kind mostly have. */
function besides({ kind, base_url }: PingTarget): Beside[] {
  if (kind === "mcp") return ending(base_url, "/mcp", pingMcp);
  if (!isModelKind(kind) || kind === "demo") return [];
  const by = apiPingOf(kind);
  const ping = (target: PingTarget) => pingApi(target, by);
  const url = new URL(base_url);
  const is_call = CALL.test(url.pathname);
  url.pathname = url.pathname.replace(CALL, "");
  const cut = url.href;
  return [
    ...(is_call ? [{ base_url: cut, ping }] : []),
    ...(by.without === undefined ? ending(cut, "/v1", ping) : []),
  ];
}

function ending(base_url: string, end: string, ping: Beside["ping"]): Beside[] {
  const url = new URL(base_url);
  const path = url.pathname.replace(/(?<!\/)\/+$/, "");
  if (path.endsWith(end)) return [];
  url.pathname = `${path}${end}`;
  return [{ base_url: url.href, ping }];
}
