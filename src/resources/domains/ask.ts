import type { App } from "../../app.ts";
import { dnsErrorCode, isNoRecord, isUnreached } from "../../net/dns.ts";
import type { DnsAnswers } from "../../net/dns-reply.ts";
import { registrableDomain } from "../../net/domain-owner.ts";
import { isDmarc } from "./judge.ts";
import { dmarcName, type Finding } from "./records.ts";

/** Returns the records of a name, or the finding if there are none. */
export type Answered<T> = { records: T[] } | { none: Finding };

export async function ask<T extends keyof DnsAnswers>(
  app: App,
  name: string,
  type: T,
): Promise<Answered<DnsAnswers[T][number]>> {
  try {
    return { records: await app.resolver(name, type, { fresh: true }) };
  } catch (error) {
    const code = dnsErrorCode(error);
    if (code === undefined) throw error;
    if (!isNoRecord(error))
      return {
        none: nothing(
          "pending",
          isUnreached(error) ? UNREACHED : `${SILENCE[code] ?? "The DNS gave no answer"}. We will ask again.`,
        ),
      };
    const words = code === "ENODATA" ? `${name} has no ${type} record` : `The DNS knows no name ${name}`;
    return {
      none: nothing("missing", `${words}. Publish it; until it is seen everywhere some minutes can pass.`),
    };
  }
}

/** Said of each record while the DNS cannot be asked at all. */
export const UNREACHED =
  "The name server that this server asks cannot be reached, so nothing is known of this record. Whoever runs this server sees to dns.servers; `mailwright doctor` says more.";

const SILENCE: Record<string, string> = {
  ETIMEOUT: "The DNS did not answer in time",
  ESERVFAIL:
    "Our name server found no answer (SERVFAIL): it cannot reach the servers of this domain, or they have a fault",
  EREFUSED: "The DNS refused to answer",
};

/** The TXT records of a name, each with its strings joined (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
export async function askTexts(app: App, name: string): Promise<Answered<string>> {
  const answer = await ask(app, name, "TXT");
  return "none" in answer ? answer : { records: answer.records.map((strings) => strings.join("").trim()) };
}

/** The DMARC policy of a domain: its own, or that of the registered domain above it (RFC 7489 §6.6.3). */
export async function askDmarc(app: App, domain: string): Promise<Answered<string>> {
  const own = await askTexts(app, dmarcName(domain));
  const parent = registrableDomain(domain);
  const settled = "none" in own ? own.none.status === "pending" : own.records.some(isDmarc);
  if (settled || parent === null || parent === domain) return own;
  const above = await askTexts(app, dmarcName(parent));
  const decides = "none" in above ? above.none.status === "pending" : above.records.some(isDmarc);
  return decides ? above : own;
}

/** Returns the finding of `judge` about the records of a name, or the one for no records. */
export function judged<T>(answer: Answered<T>, judge: (records: T[]) => Finding): Finding {
  return "none" in answer ? answer.none : judge(answer.records);
}

function nothing(status: "missing" | "pending", reason: string): Finding {
  return { status, found: [], reason };
}
