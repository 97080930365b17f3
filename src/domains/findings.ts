import type { App } from "../app.ts";
import type { CustomDomainRow } from "../db/schema.ts";
import { dnsErrorCode, isNoRecord } from "../lib/dns.ts";
import type { DnsAnswers } from "../lib/dns-reply.ts";
import { registrableDomain } from "../mail/domain-owner.ts";
import {
  dkimName,
  dmarcName,
  type Finding,
  type Findings,
  ownershipName,
  ownershipValue,
} from "./records.ts";
import { allowsHost, isSpf, withHost } from "./spf.ts";

/** Of what other people publish no more is kept. */
const MAX_FOUND = 10;
const MAX_FOUND_CHARS = 1_000;

/** Asks the DNS for all records of a domain. Never rejects because of what the DNS says, or does not say. */
export async function lookForRecords(app: App, row: CustomDomainRow): Promise<Findings> {
  const { domain } = row;
  const host = app.config.smtp.hostname;
  const [ownership, mx, texts, dkim, dmarc] = await Promise.all([
    askTexts(app, ownershipName(domain)),
    ask(app, domain, "MX"),
    askTexts(app, domain),
    askTexts(app, dkimName(row)),
    askDmarc(app, domain),
  ]);
  const inbound_mx = judged(mx, (records) => judgeMx(records, host));
  const is_mx = inbound_mx.status === "verified";
  const findings = {
    ownership: judged(ownership, (found) => judgeOwnership(found, ownershipValue(row))),
    inbound_mx,
    spf: judged(texts, (found) => judgeSpf(found.filter(isSpf), { host, is_mx })),
    dkim: judged(dkim, (found) => judgeDkim(found, row.dkim_public)),
    dmarc: judged(dmarc, judgeDmarc),
  };
  for (const finding of Object.values(findings)) bound(finding);
  return findings;
}

/** The records of a name, or what it means that there are none. */
type Answered<T> = { records: T[] } | { none: Finding };

async function ask<T extends "MX" | "TXT">(
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
      return { none: nothing("pending", `${SILENCE[code] ?? "The DNS gave no answer"}. We will ask again.`) };
    const words = code === "ENODATA" ? `${name} has no ${type} record` : `The DNS knows no name ${name}`;
    return {
      none: nothing("missing", `${words}. Publish it; until it is seen everywhere some minutes can pass.`),
    };
  }
}

const SILENCE: Record<string, string> = {
  ETIMEOUT: "The DNS did not answer in time",
  ESERVFAIL: "The DNS servers of this domain have a fault (SERVFAIL)",
  EREFUSED: "The DNS refused to answer",
};

/** The strings of one record belong together (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
async function askTexts(app: App, name: string): Promise<Answered<string>> {
  const answer = await ask(app, name, "TXT");
  return "none" in answer ? answer : { records: answer.records.map((strings) => strings.join("").trim()) };
}

/** A policy of the registered domain holds for what is below it (RFC 7489 §6.6.3). */
async function askDmarc(app: App, domain: string): Promise<Answered<string>> {
  const own = await askTexts(app, dmarcName(domain));
  const parent = registrableDomain(domain);
  const settled = "none" in own ? own.none.status === "pending" : own.records.some(isDmarc);
  if (settled || parent === null || parent === domain) return own;
  const above = await askTexts(app, dmarcName(parent));
  const decides = "none" in above ? above.none.status === "pending" : above.records.some(isDmarc);
  return decides ? above : own;
}

function judged<T>(answer: Answered<T>, judge: (records: T[]) => Finding): Finding {
  return "none" in answer ? answer.none : judge(answer.records);
}

function judgeOwnership(found: string[], value: string): Finding {
  if (found.includes(value)) return { status: "verified", found: [value], reason: "It is there." };
  return mismatch(
    found,
    "This name has a TXT record, but not with this value. Compare the two, character by character.",
  );
}

function judgeMx(records: DnsAnswers["MX"], host: string): Finding {
  const sorted = records.toSorted((a, b) => a.priority - b.priority);
  const found = sorted.map(({ exchange, priority }) => `${priority} ${exchange}`);
  const ours = sorted.find(({ exchange }) => hostName(exchange) === hostName(host));
  if (!ours)
    return mismatch(
      found,
      `Mail for this domain goes to another server. To leave it there, remove this domain and add a subdomain of it instead; else point its MX record to ${host}.`,
    );
  // Other servers of the best priority get a share of the mail (RFC 5321 §5.1).
  const rivals = sorted.filter(
    (one) => one.priority <= ours.priority && hostName(one.exchange) !== hostName(host),
  );
  const reason =
    rivals.length === 0
      ? "It is there."
      : `It is there, but other servers are tried before it or get a share of the mail: ${rivals
          .slice(0, MAX_FOUND)
          .map(({ exchange }) => exchange)
          .join(", ")}. Give ${host} the lowest number of all, or remove the others.`;
  return { status: "verified", found, reason };
}

function judgeSpf(found: string[], { host, is_mx }: { host: string; is_mx: boolean }): Finding {
  const [only] = found;
  if (only === undefined)
    return nothing("missing", "There is no SPF record yet. Publish it, so that replies are trusted.");
  if (found.length > 1)
    return {
      ...mismatch(found, "There are several SPF records, which counts as none. Replace them by this one."),
      value: withHost(found, host),
    };
  if (allowsHost(only, host, is_mx))
    return { status: "verified", found, reason: "It is there.", value: only };
  return {
    ...mismatch(
      found,
      "The SPF record does not name this server. Replace it by this one, which keeps what it says.",
    ),
    value: withHost(found, host),
  };
}

function judgeDkim(found: string[], public_part: string): Finding {
  const right = found.some((text) => isKeyRecord(text, public_part));
  if (right && found.length === 1) return { status: "verified", found, reason: "It is there." };
  return mismatch(
    found,
    right
      ? "The key is there, but beside other records of this name, which confuses receivers. Remove the others."
      : "The record does not hold the key of this domain. It is long: see that nothing of it was cut off.",
  );
}

/** RFC 6376 §3.6.1. */
function isKeyRecord(text: string, public_part: string): boolean {
  const tags = new Map(
    text.split(";").map((tag) => {
      const equals = tag.indexOf("=");
      return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replaceAll(/\s+/g, "")];
    }),
  );
  return (
    tags.get("p") === public_part &&
    (tags.get("k") ?? "rsa") === "rsa" &&
    (tags.get("v") ?? "DKIM1") === "DKIM1"
  );
}

function judgeDmarc(found: string[]): Finding {
  const policies = found.filter(isDmarc);
  if (policies.length === 1)
    return { status: "verified", found: policies, reason: "There is a policy; any will do." };
  if (policies.length > 1)
    return mismatch(policies, "There are several DMARC records, which counts as none. Leave one.");
  return mismatch(found, "This name has a TXT record, but none that begins with v=DMARC1.");
}

function isDmarc(text: string): boolean {
  return /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text);
}

/** Host names are the same in any case, and with or without the dot of the root (RFC 4343). */
function hostName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

function nothing(status: "missing" | "pending", reason: string): Finding {
  return { status, found: [], reason };
}

function mismatch(found: string[], reason: string): Finding {
  return { status: "mismatch", found, reason };
}

function bound(finding: Finding): void {
  const { found, value = "" } = finding;
  finding.found = found.slice(0, MAX_FOUND).map((text) => text.slice(0, MAX_FOUND_CHARS).toWellFormed());
  // Longer than any resolver reads (RFC 7208 §3.4 has 450 octets in mind): better to begin anew.
  if (value.length > MAX_FOUND_CHARS) delete finding.value;
}
