import { refusalFor } from "../reasons.ts";
import type { App } from "../app.ts";
import { clientNetwork, inNetworks } from "../net/networks.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import { relayAt } from "../mail/reading/front-relay.ts";
import type { Reception, Recipient } from "./receive.ts";
import { findListing, type Listing } from "./block-list.ts";
import { HOUR_SECONDS, MINUTE_SECONDS } from "../lib/durations.ts";

/** The most unknown recipients of one connection: whoever names more is trying addresses out. */
const MAX_UNKNOWN_RECIPIENTS = 10;

/** A visit: what is known about an SMTP connection for as long as it lasts. */
export interface Visit {
  /** The recipients it has named, by their address in lower case. */
  recipients: Map<string, Recipient>;
  unknown: number;
  /** Whether it comes from a machine of the operator's, which forwards other people's mail. */
  known: boolean;
  /** What the block lists say; undefined if none is asked. */
  listing: Promise<Listing | undefined> | undefined;
  /** When a mail last made progress on it, on the clock of `performance`. */
  moved_ms: number;
  /** Whether it has sent a mail to its end, and waits for the answer. */
  awaits_answer: boolean;
}

export type Turned = Pick<Reception, "code" | "enhanced" | "text">;

export interface Visits {
  /** Begins a visit; returns a refusal if it may not begin. Either way `end` must follow. */
  begin(id: string, address: string): Turned | undefined;
  of(id: string): Visit | undefined;
  /** Records that a mail has made progress on it. */
  goOn(id: string): void;
  end(id: string, address: string): void;
  /** Returns whether a client may have one more connection, for which another one is ended if need be. */
  mayCome(address: string): boolean;
}

/** Tracks the open connections, and what one client may do in a minute and an hour. */
export function createVisits(app: App): Visits {
  const open = new Map<string, Visit>();
  const perClient = new Map<string, number>();
  const { max_connections_per_address: most, dnsbl } = app.config.smtp;
  return {
    begin(id, address) {
      const client = clientNetwork(address);
      const count = (perClient.get(client) ?? 0) + 1;
      perClient.set(client, count);
      const visit: Visit = {
        recipients: new Map(),
        unknown: 0,
        known: isKnown(app, address),
        listing: undefined,
        moved_ms: performance.now(),
        awaits_answer: false,
      };
      open.set(id, visit);
      if (visit.known) return undefined;
      if (count > most)
        return refusalFor("too_many_connections", `Too many connections from ${address}; ${LATER}`);
      const refused = refuseOverRate(app, CONNECTIONS, address);
      if (!refused && dnsbl.length > 0) visit.listing = findListing(app, address);
      return refused;
    },
    of: (id) => open.get(id),
    goOn(id) {
      const visit = open.get(id);
      if (visit) visit.moved_ms = performance.now();
    },
    end(id, address) {
      // A connection that left before its greeting was never counted.
      if (!open.delete(id)) return;
      const client = clientNetwork(address);
      const left = (perClient.get(client) ?? 1) - 1;
      if (left > 0) perClient.set(client, left);
      else perClient.delete(client);
    },
    mayCome(address) {
      if (isKnown(app, address)) return true;
      const { ok } = app.limiter.peek(...rateOf(app, CONNECTIONS, address));
      return ok && (perClient.get(clientNetwork(address)) ?? 0) < most;
    },
  };
}

/** Counts a mail against what one client may send in an hour; returns the refusal when that is used up. */
export function refuseOverMails(app: App, visit: Pick<Visit, "known">, address: string): Turned | undefined {
  return visit.known ? undefined : refuseOverRate(app, MAILS, address);
}

/** Runs `work` on a mail of a visit, and marks meanwhile that the client waits for the answer. */
export async function whileAwaited<Answer>(
  visit: Visit | undefined,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (visit) visit.awaits_answer = true;
  try {
    return await work();
  } finally {
    if (visit) {
      visit.awaits_answer = false;
      visit.moved_ms = performance.now();
    }
  }
}

/** Counts a recipient that does not exist; returns a refusal once it was one too many. */
export function refuseOverUnknown(visit: Visit): Turned | undefined {
  visit.unknown += 1;
  return visit.unknown > MAX_UNKNOWN_RECIPIENTS && !visit.known
    ? { ...refusalFor("unknown_recipient", `Too many recipients that are not here; ${LATER}`), ...GOOD_BYE }
    : undefined;
}

/**
 * Returns the reply to a block-listed client for every recipient. Only the operator's addresses take its mail, because
 * the operator must be reachable about the listing (RFC 2142).
 */
export async function refuseListed(
  listing: Promise<Listing | undefined>,
  address: string,
): Promise<Turned | undefined> {
  const { zone, reason } = (await listing) ?? {};
  if (zone === undefined) return undefined;
  const text = `Mail from ${address} is not taken: it is on the block list ${zone}. ${reason}`.trim();
  return refusalFor("block_list", text);
}

const LATER = "please try again later";
/** The answer that ends the connection (RFC 5321 §4.2.3). */
const GOOD_BYE = { code: 421, enhanced: "4.7.0" } as const;

interface Rate {
  name: "smtp_connections_per_ip_minute" | "smtp_mails_per_ip_hour";
  window_seconds: number;
  refusal: (limit: number) => Turned;
}

const CONNECTIONS: Rate = {
  name: "smtp_connections_per_ip_minute",
  window_seconds: MINUTE_SECONDS,
  refusal: (limit) => ({
    ...refusalFor("rate_limited", `More than ${limit} connections in a minute; ${LATER}`),
    ...GOOD_BYE,
  }),
};

const MAILS: Rate = {
  name: "smtp_mails_per_ip_hour",
  window_seconds: HOUR_SECONDS,
  refusal: (limit) =>
    refusalFor("rate_limited", `More than ${limit} mails in an hour from your address; ${LATER}`),
};

function refuseOverRate(app: App, rate: Rate, address: string): Turned | undefined {
  const { ok, limit } = app.limiter.take(...rateOf(app, rate, address));
  return ok ? undefined : rate.refusal(limit);
}

function rateOf(app: App, { name, window_seconds }: Rate, address: string): [key: string, rule: RateRule] {
  return [`${name}:${clientNetwork(address)}`, { limit: app.config.limits[name], window_seconds }];
}

export function isKnown(app: App, address: string): boolean {
  const { trusted_networks, trusted_relays } = app.config.smtp;
  return inNetworks(address, trusted_networks) || relayAt(address, trusted_relays) !== undefined;
}
