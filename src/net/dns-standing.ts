import { messageOf } from "../errors.ts";
import type { Log } from "../lib/log.ts";
import { createNameServers, nameServerNames, RESOLV_CONF } from "./name-servers.ts";
import type { DnsOutcome } from "./dns-reply.ts";

/** How long the DNS may be silent before that is reported: a restarted name server is back by then. */
const SILENT_MINUTES = 3;
const MINUTE_MS = 60_000;

/** Counts of lookups by outcome, in memory shared between all threads that ask. */
export type DnsCounts = Int32Array<SharedArrayBuffer>;

const ANSWERED = 0;
const UNANSWERED = 1;
/** Since the last answer: the domain asked for first, as a number, and whether others were asked for as well. */
const DOMAIN = 2;
const SEVERAL = 3;

export function newDnsCounts(): DnsCounts {
  return new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT));
}

/** Counts a finished lookup; null when not even the name servers are known. */
export function countLookUp(counts: DnsCounts, name: string, outcome: DnsOutcome | null): void {
  if (outcome !== null && isAnswer(outcome)) {
    Atomics.add(counts, ANSWERED, 1);
    if (unanswered(counts) !== 0)
      for (const at of [UNANSWERED, DOMAIN, SEVERAL]) Atomics.store(counts, at, 0);
    return;
  }
  const domain = numberOf(name.split(".").slice(-2).join("."));
  const first = Atomics.compareExchange(counts, DOMAIN, 0, domain);
  const is_ours = outcome === null || ("error" in outcome && outcome.unreached === true);
  // A single domain's name servers may be down, so that ours wait for them in vain.
  if (is_ours || (first !== 0 && first !== domain)) Atomics.store(counts, SEVERAL, 1);
  Atomics.add(counts, UNANSWERED, 1);
}

/** Returns how many lookups were not answered since the last one that was. */
export function unanswered(counts: DnsCounts): number {
  return Atomics.load(counts, UNANSWERED);
}

function isAnswer(outcome: DnsOutcome): boolean {
  return !("error" in outcome) || outcome.error === "ENODATA" || outcome.error === "ENOTFOUND";
}

/** Returns a number other than 0 for a domain, usually different for different domains. */
function numberOf(domain: string): number {
  return Bun.hash.crc32(domain) | 0 || 1;
}

export interface DnsWatch {
  /**
   * Returns for how many minutes no lookup was answered while some were made; undefined while all is well. Must be
   * called once a minute.
   */
  silentMinutes: () => number | undefined;
}

/** Watches the counts, by the caller's own clock, because each thread has another. */
export function watchDns(counts: DnsCounts, nowMs: () => number = () => performance.now()): DnsWatch {
  let answered = Atomics.load(counts, ANSWERED);
  let begin: { at_ms: number; in_vain: number } | undefined;
  return {
    silentMinutes() {
      const in_vain = unanswered(counts);
      if (answered !== Atomics.load(counts, ANSWERED)) begin = undefined;
      answered = Atomics.load(counts, ANSWERED);
      if (in_vain === 0) return undefined;
      begin ??= { at_ms: nowMs(), in_vain };
      const minutes = Math.floor((nowMs() - begin.at_ms) / MINUTE_MS);
      const is_lasting = minutes >= SILENT_MINUTES && in_vain !== begin.in_vain;
      return is_lasting && Atomics.load(counts, SEVERAL) !== 0 ? minutes : undefined;
    },
  };
}

/** Returns a warning when the DNS has been silent for minutes; undefined while it answers. */
export function dnsWarning(watch: DnsWatch, given: string[], file = RESOLV_CONF): string | undefined {
  const minutes = watch.silentMinutes();
  if (minutes === undefined) return undefined;
  const harm =
    "Mail from outside is put off meanwhile, and no mail server, model, tool server or webhook is found by its name.";
  const mend =
    given.length > 0
      ? "Name others in dns.servers, or see that these run and can be reached (port 53, over UDP and TCP)."
      : `Name servers in ${file} that can be reached (port 53, over UDP and TCP), or set dns.servers.`;
  return `No look-up of a name was answered for ${minutes} minutes (${askedIn(given, file)}). ${harm} ${mend}`;
}

function askedIn(given: string[], file: string): string {
  try {
    return `asked: ${nameServerNames(createNameServers(given, file)())}`;
  } catch (error) {
    return `${file} cannot be read: ${messageOf(error)}`;
  }
}

/** Returns a function that logs the warning at each call while the DNS is silent, and once when that is over. */
export function dnsTeller(log: Pick<Log, "warn" | "info">, words: () => string | undefined): () => void {
  let told = false;
  return () => {
    const found = words();
    if (found !== undefined) log.warn(found);
    else if (told) log.info("the DNS answers again");
    told = found !== undefined;
  };
}

export interface WatchedDns extends Disposable {
  warning: () => string | undefined;
}

/** Looks up a name, and counts the outcome. */
type Ask = (name: string, rrtype: "NS", options: { fresh: true }) => Promise<unknown>;

/**
 * After a failed lookup, asks for names that no single domain is responsible for: only if these fail as well, the DNS
 * is at fault. Any answer shows that the name servers work, also in a network with its own names only.
 */
export async function askForProof(counts: DnsCounts, ask: Ask, own_domain: string): Promise<void> {
  if (unanswered(counts) === 0) return;
  await Promise.allSettled(["com", own_domain].map((name) => ask(name, "NS", { fresh: true })));
}

interface Watched {
  config: { dns: { servers: string[] }; smtp: { domain: string } };
  dns_counts: DnsCounts;
  resolver: Ask;
  log: Log;
}

/** Checks the counts each minute; does not keep the process alive. */
export function keepDnsWatch({ config, dns_counts, resolver, log }: Watched): WatchedDns {
  const watch = watchDns(dns_counts);
  const warning = (): string | undefined => dnsWarning(watch, config.dns.servers);
  const tell = dnsTeller(log, warning);
  const timer = setInterval(() => {
    tell();
    void askForProof(dns_counts, resolver, config.smtp.domain);
  }, MINUTE_MS);
  timer.unref();
  return { warning, [Symbol.dispose]: () => clearInterval(timer) };
}
