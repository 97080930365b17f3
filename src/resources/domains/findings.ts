import type { App } from "../../app.ts";
import type { CustomDomainRow, DkimKeyRow } from "../../db/schema.ts";
import { dkimRecord } from "../../mail/writing/dkim.ts";
import type { Sightings } from "../../mail/writing/dkim-rotation.ts";
import { ask, askDmarc, askTexts, judged } from "./ask.ts";
import { judgeDkim, judgeDmarc, judgeMx, judgeOwnership, judgeSpf } from "./judge.ts";
import { type Finding, type Findings, MAX_FOUND, ownershipName, ownershipValue } from "./records.ts";
import { isSpf } from "./spf.ts";

const MAX_FOUND_CHARS = 1_000;

/** Asks the DNS for all records of a domain. Never rejects because of what the DNS says, or does not say. */
export async function lookForRecords(app: App, row: CustomDomainRow, keys: DkimKeyRow[]): Promise<Findings> {
  const { domain } = row;
  const host = app.config.smtp.hostname;
  const [ownership, mx, texts, dkim, dmarc] = await Promise.all([
    askTexts(app, ownershipName(domain)),
    ask(app, domain, "MX"),
    askTexts(app, domain),
    lookForKeys(app, domain, keys),
    askDmarc(app, domain),
  ]);
  const inbound_mx = judged(mx, (records) => judgeMx(records, host));
  const is_mx = inbound_mx.status === "verified";
  return {
    ownership: bounded(judged(ownership, (found) => judgeOwnership(found, ownershipValue(row)))),
    inbound_mx: bounded(inbound_mx),
    spf: bounded(judged(texts, (found) => judgeSpf(found.filter(isSpf), { host, is_mx }))),
    dkim,
    dmarc: bounded(judged(dmarc, judgeDmarc)),
  };
}

/** Looks for the record of each key; the findings are by selector. */
export async function lookForKeys(
  app: App,
  domain: string,
  keys: DkimKeyRow[],
): Promise<Record<string, Finding>> {
  const found = keys.map(async (key) => {
    const texts = await askTexts(app, dkimRecord(key, domain).name);
    return [key.selector, bounded(judged(texts, (records) => judgeDkim(records, key)))] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

/** What findings by selector mean for the keys. A finding of a DNS that does not answer means nothing. */
export function sightingsOf(found: Record<string, Finding>, keys: DkimKeyRow[]): Sightings {
  return new Map(
    keys.flatMap(({ id, selector }) => {
      const status = found[selector]?.status ?? "pending";
      return status === "pending" ? [] : [[id, status === "verified" ? "seen" : "absent"] as const];
    }),
  );
}

/** Returns a finding with no more of what other people publish than is kept. */
export function bounded(finding: Finding): Finding {
  const { value, ...rest } = finding;
  const found = rest.found.slice(0, MAX_FOUND).map((text) => text.slice(0, MAX_FOUND_CHARS).toWellFormed());
  // A value of many records may become longer than receivers read (RFC 7208 §3.4 has 450 octets in mind): then a new
  // record is better.
  const fits = value !== undefined && value.length <= MAX_FOUND_CHARS;
  return { ...rest, found, ...(fits ? { value } : {}) };
}
