import type { Stripe } from "stripe";
import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { AppError, invalid } from "../../errors.ts";
import { refuseOwnFault } from "../../lib/own-faults.ts";
import { member } from "../../lib/foreign-json.ts";

export type { Stripe } from "stripe";

const TIMEOUT_MS = 20_000;
const NETWORK_RETRIES = 2;
/** The greatest age of a signature that is accepted. */
const TOLERANCE_SECONDS = 300;

type Setting = keyof Config["billing"];

/** Settings that every payment needs. */
const NEEDED: Setting[] = ["stripe_secret_key", "stripe_webhook_secret"];

const clients = new WeakMap<App, Promise<Stripe>>();

export function takesPayments({ config }: App): boolean {
  return missingSettings(config, NEEDED).length === 0;
}

/** Throws `billing_not_configured` unless what every payment needs is set, and `needed` besides. */
export function refuseUnconfigured({ config }: App, ...needed: Setting[]): void {
  const missing = missingSettings(config, [...NEEDED, ...needed]);
  if (missing.length === 0) return;
  const [last, verb] = [missing.pop(), missing.length > 0 ? "are" : "is"];
  const names = missing.length === 0 ? last : `${missing.join(", ")} and ${last}`;
  throw new AppError("billing_not_configured", `This server takes no payments: ${names} ${verb} not set.`, {
    fix: "Ask the operator of this server for a larger plan: `mailwright user set-plan` gives it.",
  });
}

/**
 * Asks Stripe for something. Throws `unavailable` when it cannot be reached or refuses, NoHandlesError when it could
 * not be tried. What Stripe says stays out of the answer and of the log, as it could repeat what was asked.
 */
export async function askStripe<T>(app: App, ask: (stripe: Stripe) => Promise<T>): Promise<T> {
  const known = await askIfKnown(app, ask);
  if (known === undefined) throw refusal();
  return known;
}

/** As `askStripe`, but undefined where Stripe does not know what is asked for. */
export async function askIfKnown<T>(app: App, ask: (stripe: Stripe) => Promise<T>): Promise<T | undefined> {
  const stripe = await clientOf(app);
  try {
    return await ask(stripe);
  } catch (error) {
    if (!(error instanceof stripe.errors.StripeError)) throw error;
    if (error instanceof stripe.errors.StripeConnectionError) refuseOwnFault(error.detail);
    const { type, code, param, statusCode: status, requestId: stripe_request_id } = error;
    if (code === "resource_missing") {
      app.log.warn({ param, stripe_request_id }, "Stripe does not know what it was asked for");
      return undefined;
    }
    // Only the name of a network fault is logged: its message may hold an address with a key in it.
    const cause = member(error.detail, "code") ?? member(error.detail, "name");
    app.log.error({ type, code, param, status, stripe_request_id, cause }, "Stripe could not be asked");
    throw error instanceof stripe.errors.StripeConnectionError ? unreachable() : refusal();
  }
}

/** Returns the option with which a request that makes something does so once, even if it is sent again. */
export function oneRequest(): { idempotencyKey: string } {
  return { idempotencyKey: `mailwright-${Bun.randomUUIDv7()}` };
}

/** A page at Stripe as callers see it. */
export function pageOf({ url }: { url: string | null }): { url: string } {
  if (!url) throw refusal();
  return { url };
}

/** The event that Stripe sent and signed. Throws `invalid_signature` for what others sent, or sent again later. */
export async function openEvent(app: App, raw: Uint8Array, signature: string): Promise<Stripe.Event> {
  const event = await verified(app, raw, signature);
  const is_event =
    typeof member(event, "id") === "string" &&
    typeof member(event, "type") === "string" &&
    Number.isSafeInteger(member(event, "created")) &&
    typeof member(member(event, "data"), "object") === "object";
  if (!is_event) throw unreadable();
  return event;
}

function missingSettings({ billing }: Config, needed: Setting[]): string[] {
  return needed.filter((name) => billing[name] === "").map((name) => `billing.${name}`);
}

async function verified(app: App, raw: Uint8Array, signature: string): Promise<Stripe.Event> {
  const { webhooks, errors } = await clientOf(app);
  const { stripe_webhook_secret: secret } = app.config.billing;
  const now = app.wallMs();
  try {
    return await webhooks.constructEventAsync(raw, signature, secret, TOLERANCE_SECONDS, undefined, now);
  } catch (error) {
    if (error instanceof errors.StripeSignatureVerificationError)
      throw new AppError("invalid_signature", "The signature of this event is wrong or too old.");
    throw unreadable();
  }
}

function unreadable(): AppError {
  return invalid("body", "json_invalid", "The body is no event that this server can read.");
}

function clientOf(app: App): Promise<Stripe> {
  const client = clients.get(app) ?? createClient(app);
  clients.set(app, client);
  return client;
}

async function createClient(app: App): Promise<Stripe> {
  const { default: Library } = await import("stripe");
  const { stripe_secret_key, stripe_api_base } = app.config.billing;
  return new Library(stripe_secret_key, {
    ...(stripe_api_base === "" ? {} : placeOf(new URL(stripe_api_base))),
    httpClient: Library.createFetchHttpClient(app.fetch as typeof fetch),
    timeout: TIMEOUT_MS,
    maxNetworkRetries: NETWORK_RETRIES,
    telemetry: false,
  });
}

function placeOf({ protocol, hostname, port }: URL) {
  const plain = protocol === "http:";
  return {
    host: hostname,
    port: port || (plain ? "80" : "443"),
    protocol: plain ? ("http" as const) : ("https" as const),
  };
}

function unreachable(): AppError {
  return new AppError("unavailable", "The payment provider cannot be reached right now.", {
    fix: "Nothing was paid. Try again in a minute.",
  });
}

function refusal(): AppError {
  return new AppError("unavailable", "The payment provider did not accept what this server asked for.", {
    fix: "Nothing was paid. If you run this server: its log says more, most often a wrong key or price in [billing].",
  });
}
