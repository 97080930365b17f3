import { messageOf } from "../errors.ts";
import type { Log } from "../lib/log.ts";
import { createNameServers, nameServerNames, RESOLV_CONF } from "./name-servers.ts";
import type { DnsOutcome } from "./dns-reply.ts";

/** How long nothing may be answered before somebody is told: a name server that is restarted is back by then. */
const SILENT_MINUTES = 3;
const MINUTE_MS = 60_000;

/** What became of look-ups, counted by every thread that asks: the memory of it is shared between them. */
export type DnsCounts = Int32Array<SharedArrayBuffer>;

const ANSWERED = 0;
const UNANSWERED = 1;
/** Since the last answer: the domain that was asked for first, as a number, and whether it was more than that one. */
const DOMAIN = 2;
const SEVERAL = 3;

export function newDnsCounts(): DnsCounts {
  return new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT));
}

/** Counts a look-up that came to its end; null: the name servers are not even known. */
export function countLookUp(counts: DnsCounts, name: string, outcome: DnsOutcome | null): void {
  if (outcome !== null && isAnswer(outcome)) {
    Atomics.add(counts, ANSWERED, 1);
    if (unanswered(counts) !== 0)
      for (const at of [UNANSWERED, DOMAIN, SEVERAL]) Atomics.store(counts, at, 0);
    return;
  }
  const domain = numberOf(name.split(".").slice(-2).join("."));
  const first = Atomics.compareExchange(counts, DOMAIN, 0, domain);
  const isOurs = outcome === null || ("error" in outcome && outcome.unreached === true);
  // The name servers of one domain may be down, and ours wait for them in vain.
  if (isOurs || (first !== 0 && first !== domain)) Atomics.store(counts, SEVERAL, 1);
  Atomics.add(counts, UNANSWERED, 1);
}

/** How many look-ups were not answered since the last one that was. */
export function unanswered(counts: DnsCounts): number {
  return Atomics.load(counts, UNANSWERED);
}

function isAnswer(outcome: DnsOutcome): boolean {
  return !("error" in outcome) || outcome.error === "ENODATA" || outcome.error === "ENOTFOUND";
}

/** A number other than 0, mostly another one for another domain. */
function numberOf(domain: string): number {
  return Bun.hash.crc32(domain) | 0 || 1;
}

export interface DnsWatch {
  /** For how many minutes no look-up was answered while some were asked; undefined while all is well. To be called each minute. */
  silentMinutes: () => number | undefined;
}

/** The clock is that of whoever looks: each thread has another one. */
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
      const isLasting = minutes >= SILENT_MINUTES && in_vain !== begin.in_vain;
      return isLasting && Atomics.load(counts, SEVERAL) !== 0 ? minutes : undefined;
    },
  };
}

/** Returns a sentence where the DNS has been silent for minutes; undefined while it answers. */
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

/** Says it in the log while the DNS is silent, each time it is called, and once when that is over. */
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

/** Asks for a name, and counts what comes of it. */
type Ask = (name: string, rrtype: "NS", options: { fresh: true }) => Promise<unknown>;

/**
 * Once some look-up was in vain, asks for what no single domain can be at fault for: only then is it the DNS. Any answer
 * shows that the name servers work, also one of a network that has names of its own only.
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

/** Looks each minute at what was answered, and keeps no process alive. */
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
