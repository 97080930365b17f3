import { urlOf } from "../../lib/web-address.ts";
import { isIP } from "node:net";
import type { App } from "../../app.ts";
import { invalid } from "../../errors.ts";
import {
  allowedByOperator,
  BlockedAddressError,
  type DialTarget,
  judgeHost,
} from "../../net/guarded-fetch.ts";

const PATH = "body.url";
/** Addresses that every parser reads the same way: a URL parser drops or corrects other characters without a word. */
const WEB_URL = /^https?:\/\/[^\s\p{C}\\#@/?]+(?:[/?][^\s\p{C}\\#]*)?$/iu;
/** Names that are never on the public internet: RFC 6761, 6762, 7686, 8375, and `internal` as ICANN reserved it. */
const RESERVED_NAME = /(^|\.)(local|internal|localhost|home\.arpa|onion)$/;

/**
 * Throws `validation_error` unless an endpoint may be at this address as far as can be told now. A name that nobody
 * knows yet is taken: each delivery looks it up and judges the answer again.
 */
export async function refuseBadAddress(app: App, text: string): Promise<void> {
  const url = WEB_URL.test(text) ? urlOf(text) : null;
  if (!url || url.username + url.password !== "")
    throw invalid(
      PATH,
      "invalid_url",
      "url must be an https:// address without blanks, user name, password or fragment.",
    );
  const host = url.hostname.replace(/^\[|\]$|(?<!\.)\.+$/g, "");
  const { allow } = app.config.webhooks;
  const named = allowedByOperator(host, host, allow);
  if (!named && isIP(host) === 0) refusePrivateName(host);
  const target = await resolveReceiver(app, host);
  if (url.protocol === "http:" && !named && !target?.plain_http)
    throw invalid(
      PATH,
      "https_required",
      "url must be https; plain http works only for hosts that the operator of this server lists in webhooks.allow.",
    );
}

function refusePrivateName(host: string): void {
  if (host.includes(".") && !RESERVED_NAME.test(host)) return;
  throw invalid(
    PATH,
    "not_public",
    `${host} is no name on the public internet. If it is meant, the operator of this server can add "${host}" to webhooks.allow.`,
  );
}

/** Where a receiver may be dialled; null for a name without an address. */
async function resolveReceiver(app: App, host: string): Promise<DialTarget | null> {
  const { allow } = app.config.webhooks;
  try {
    return await judgeHost(host, { resolve: app.resolver, allow, setting: "webhooks.allow" });
  } catch (error) {
    if (error instanceof BlockedAddressError) throw invalid(PATH, "not_public", error.message);
    return null;
  }
}
