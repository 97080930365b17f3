import type { App } from "../../app.ts";
import { base32Token, equalBytes } from "../../lib/secrets.ts";

const CODE_CHARS = 8;

/** `<uuid.code@domain>` without the angle brackets: the code lets us know our own ids again (decision L.5b). */
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
