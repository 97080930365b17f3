import type { App } from "../app.ts";
import { clientNetwork } from "../net/networks.ts";
import type { Delivery } from "./decide.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

/** The client that brings a mail, as far as it is known at RCPT. */
export type Client = Pick<Delivery, "mail_from" | "remote_address">;

/**
 * Remembers that a mail for several was put off because of `what`, which names one recipient. SMTP has one reply for a
 * whole mail, so only at RCPT, when the mail comes again, can the recipients be told apart. The note holds for a day,
 * as long as the sender's server may wait before it comes again, unless `seconds` says less.
 */
export function notePutOffFor(app: App, what: string, client: Client, seconds = DAY_SECONDS): void {
  const key = keyOf(what, client);
  app.limiter.forget(key);
  app.limiter.take(key, { limit: 1, window_seconds: Math.min(seconds, DAY_SECONDS) });
}

/** Returns whether a mail of this client was put off because of `what`. */
export function wasPutOffFor(app: App, what: string, client: Client): boolean {
  return !app.limiter.peek(keyOf(what, client), { limit: 1, window_seconds: DAY_SECONDS }).ok;
}

function keyOf(what: string, { mail_from, remote_address }: Client): string {
  return `put-off:${what}:${clientNetwork(remote_address)}:${mail_from.toLowerCase()}`;
}
