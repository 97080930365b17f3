import type { App } from "../app.ts";
import { invalid } from "../errors.ts";
import { allowedByOperator } from "../lib/net.ts";

const MAX_HEADERS = 20;
/** RFC 9110 §5.6.2, without the characters that nobody uses in names. */
const HEADER_NAME = /^[A-Za-z0-9_-]{1,100}$/;
/** What the connection itself decides, not its settings (RFC 9110 §7.6.1). */
const OWN_HEADERS =
  /^(host|content-length|content-type|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect)$/i;
const SENDABLE = /^[\x20-\x7e]*$/;

/** What could not be sent as a header later, or would change the request itself. */
export function refuseUnsendable({
  credential,
  headers,
}: {
  credential: string;
  headers: Record<string, string>;
}): void {
  if (!SENDABLE.test(credential))
    throw invalid(
      "body.credential",
      "invalid_credential",
      "The credential holds a line break or a character outside of ASCII; paste it again.",
    );
  const entries = Object.entries(headers);
  const isBad = ([name, value]: [string, string]): boolean =>
    !HEADER_NAME.test(name) || OWN_HEADERS.test(name) || !SENDABLE.test(value);
  if (entries.length > MAX_HEADERS || entries.some(isBad))
    throw invalid(
      "body.headers",
      "invalid_headers",
      `headers must be at most ${MAX_HEADERS} names of letters, digits and hyphens with values of one ASCII line, none of which the connection sets itself (such as Host or Content-Length).`,
    );
}

export function refuseBadUrl(app: App, text: string): void {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username + url.password !== "" || url.hash !== "")
    throw invalid(
      "body.base_url",
      "invalid_url",
      "base_url must be an http(s) address without user name, password or fragment.",
    );
  if (url.protocol === "http:" && !allowedByOperator(url.hostname, url.hostname, app.config.egress.allow))
    throw invalid(
      "body.base_url",
      "https_required",
      `base_url must be https; plain http works only for hosts that the operator lists in egress.allow.`,
    );
}
