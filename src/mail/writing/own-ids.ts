import type { App } from "../../app.ts";
import type { Address } from "../../lib/mail-address.ts";
import { base32Token, equalBytes } from "../../lib/secrets.ts";

const CODE_CHARS = 8;
const BOUNCE_TOKEN_CHARS = 16;

/**
 * Returns a Message-ID `uuid.code@domain` without angle brackets. The code (a MAC) lets this server recognize its own
 * ids (decision L.5b).
 */
export function newMessageId(app: App, outgoing_id: string, domain: string): string {
  return `${outgoing_id}.${codeOf(app, outgoing_id)}@${domain}`;
}

export function isOwnMessageId(app: App, id: string): boolean {
  const form = /^([0-9a-f-]{36})\.([a-z2-7]{8})@/.exec(id);
  return form !== null && equalBytes(form[2] ?? "", codeOf(app, form[1] ?? ""));
}

function codeOf(app: App, outgoing_id: string): string {
  return base32Token(app.secrets.hmac("message-id", outgoing_id), CODE_CHARS);
}

/** Returns the envelope sender of a mail, which tells which mail a bounce is about (VERP). */
export function bounceAddress(app: App, outgoing_id: string, domain: string): string {
  return `b+${outgoing_id.replaceAll("-", "")}${bounceCode(app, outgoing_id)}@${domain}`;
}

/**
 * Returns the id of the outgoing mail for which a bounce address was made; undefined for an address that this server
 * did not make.
 */
export function outgoingOfBounce(app: App, address: Address): string | undefined {
  const form = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([a-z2-7]+)$/.exec(
    address.tag ?? "",
  );
  if (address.local_part !== "b" || !form) return undefined;
  const id = form.slice(1, 6).join("-");
  return equalBytes(form[6] ?? "", bounceCode(app, id)) ? id : undefined;
}

function bounceCode(app: App, outgoing_id: string): string {
  return base32Token(app.secrets.hmac("bounce", outgoing_id), BOUNCE_TOKEN_CHARS);
}
