import ipaddr from "ipaddr.js";
import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import { isNoRecord } from "../net/dns.ts";
import { waitLimit } from "../lib/wait-limit.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

/** Milliseconds for a list to answer; one that takes longer counts as not listing the client. */
const ANSWER_MS = 3_000;
const MAX_REASON_CHARS = 200;
/** The log gets one line an hour for each list that is out of order. */
const WARNINGS = { limit: 1, window_seconds: HOUR_SECONDS };

export interface Listing {
  zone: string;
  /** The list's own words, cleaned; "" when it has none. */
  reason: string;
}

/**
 * Returns the first of the lists of `smtp.dnsbl` that lists a client (RFC 5782), with its reason. Never throws: a list
 * that cannot be asked keeps nobody out.
 */
export async function findListing(app: App, address: string): Promise<Listing | undefined> {
  const reversed = reversedName(address);
  if (reversed === undefined) return undefined;
  const { dnsbl } = app.config.smtp;
  const listed = await Promise.all(dnsbl.map((zone) => isListed(app, zone, `${reversed}.${zone}`)));
  const zone = dnsbl.find((_, index) => listed[index]);
  return zone === undefined ? undefined : { zone, reason: await reasonOf(app, `${reversed}.${zone}`) };
}

/**
 * Returns the name to look up in the lists (RFC 5782 §2.1 and §2.4); undefined for an address that has no meaning
 * outside of its own network.
 */
function reversedName(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined;
  const client = ipaddr.process(address);
  if (client.range() !== "unicast") return undefined;
  if (client.kind() === "ipv4") return client.toByteArray().toReversed().join(".");
  const hex = Buffer.from(client.toByteArray()).toString("hex");
  return hex.split("").toReversed().join(".");
}

async function isListed(app: App, zone: string, name: string): Promise<boolean> {
  const answers = await withinTime(app.resolver(name, "A"), []).catch((error: unknown) => {
    if (!isNoRecord(error)) warn(app, zone, messageOf(error));
    return [];
  });
  // Lists answer with these addresses when they refuse: they were asked too often, or by way of a public resolver.
  const refused = answers.find((answer) => answer.startsWith("127.255.255."));
  if (refused !== undefined)
    warn(app, zone, `It answers ${refused}: it does not serve this server's name server.`);
  // RFC 5782 §2.1: any other address is that of a domain that was sold, or of a resolver that answers every question.
  return refused === undefined && answers.some((answer) => answer.startsWith("127."));
}

async function reasonOf(app: App, name: string): Promise<string> {
  const texts = await withinTime(app.resolver(name, "TXT"), []).catch(() => []);
  const words = texts[0]?.join("") ?? "";
  return words
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, MAX_REASON_CHARS);
}

async function withinTime<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  const late = Promise.withResolvers<T>();
  const timer = waitLimit(ANSWER_MS, () => late.resolve(otherwise));
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    timer.clear();
  }
}

function warn(app: App, zone: string, problem: string): void {
  if (app.limiter.take(`dnsbl:${zone}`, WARNINGS).ok)
    app.log.warn({ zone, problem }, "a block list in smtp.dnsbl does not answer, and keeps nobody out");
}
