import { isIP } from "node:net";
import type { App } from "../../app.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { spfResult } from "../../mail/reading/spf-check.ts";
import { ask, askDmarc, askTexts, judged } from "./ask.ts";
import { bounded, lookForKeys } from "./findings.ts";
import { hostName, judgeDmarc, judgeMx, judgeSpf, mismatch } from "./judge.ts";
import { leadsNowhere, publishable, unnamed } from "./nameless.ts";
import { mtaStsHost } from "./own-mta-sts.ts";
import type { Finding } from "./records.ts";
import { publicAddresses, serviceRecords, type WantedRecord } from "./service-records.ts";
import { isSpf } from "./spf.ts";

/** A record with what the DNS shows of it. */
export type CheckedRecord = WantedRecord & Omit<Finding, "value">;

/** Looks for every record of the service's own domain. Never rejects because of what the DNS says, or does not say. */
export async function checkServiceRecords(app: App): Promise<CheckedRecord[]> {
  const { hostname, domain } = app.config.smtp;
  const rows = await keyRows(app.db, null);
  // Asked at once, because each may take as long as a DNS that does not answer is waited for.
  const [known, keys] = await Promise.all([addressesOf(app, hostname), lookForKeys(app, domain, rows)]);
  const wanted = await serviceRecords(app, publicAddresses(), known.length > 0 ? known : publicAddresses());
  return Promise.all(publishable(app.config.smtp, wanted).map((record) => checked(app, record, keys)));
}

/** What the DNS has under that name cannot be right before this machine has a name. */
function notYet({ config: { smtp } }: App, record: WantedRecord): CheckedRecord {
  const reason = `It would lead to "${smtp.hostname}", a name that nobody outside can look up.`;
  return { ...unnamed(smtp, record), status: "missing", found: [], reason };
}

async function checked(
  app: App,
  record: WantedRecord,
  keys: Record<string, Finding>,
): Promise<CheckedRecord> {
  if (leadsNowhere(app.config.smtp, record)) return notYet(app, record);
  const selector = record.name.split(".")[0] ?? "";
  const finding = record.purpose === "dkim" ? keys[selector] : await LOOKS[record.purpose](app, record);
  const { value = record.value, ...seen } = bounded(finding ?? UNKNOWN);
  return { ...record, ...seen, value };
}

/** Returns the addresses of a host, as far as the DNS says them. */
export async function addressesOf(app: App, host: string): Promise<string[]> {
  return (await lookForHost(app, host)).addresses;
}

/** Looks for the addresses of a host. `is_silent`: the DNS did not answer, so that finding none means nothing. */
export async function lookForHost(
  app: App,
  host: string,
): Promise<{ addresses: string[]; is_silent: boolean }> {
  const answers = await Promise.all([ask(app, host, "A"), ask(app, host, "AAAA")]);
  const [v4] = answers;
  return {
    addresses: answers.flatMap((answer) => ("none" in answer ? [] : answer.records)),
    is_silent: "none" in v4 && v4.none.status === "pending",
  };
}

type Look = (app: App, record: WantedRecord) => Promise<Finding>;

/** The finding of a key that was made after the DNS was asked. */
const UNKNOWN: Finding = { status: "pending", found: [], reason: "It was not looked for." };

const LOOKS: Record<Exclude<WantedRecord["purpose"], "dkim">, Look> = {
  address: async (app, { name, type }) =>
    judged(await ask(app, name, type as "A" | "AAAA"), (found) => judgeAddresses(found, ownOf(type))),
  inbound_mx: async (app, { name }) => {
    const { hostname } = app.config.smtp;
    const finding = judged(await ask(app, name, "MX"), (records) => judgeMx(records, hostname));
    return finding.status === "mismatch"
      ? mismatch(
          finding.found,
          `Mail for ${name} goes to another server. Point its MX record to ${hostname}.`,
        )
      : finding;
  },
  spf: lookForSpf,
  dmarc: async (app) => judged(await askDmarc(app, app.config.smtp.domain), judgeDmarc),
  ptr: async (app, { name }) =>
    judged(await ask(app, name, "PTR"), (found) => judgePtr(found, app.config.smtp.hostname)),
  mta_sts: async (app, { name, value }) =>
    judged(await askTexts(app, name), (found) => judgeMtaSts(found, value ?? "")),
  mta_sts_host: async (app) => {
    const host = mtaStsHost(app.config);
    const [a, aaaa] = await Promise.all([ask(app, host, "A"), ask(app, host, "AAAA")]);
    return judged("records" in aaaa ? aaaa : a, (found) => ({
      status: "verified",
      found,
      reason: "It has an address.",
    }));
  },
  tls_rpt: async (app, { name }) =>
    judged(await askTexts(app, name), (found) =>
      found.filter((text) => /^v=TLSRPTv1\s*;/.test(text)).length === 1
        ? { status: "verified", found, reason: "It is there." }
        : mismatch(found, "This name has a TXT record, but not one that begins with v=TLSRPTv1."),
    ),
};

function ownOf(type: WantedRecord["type"]): string[] {
  return publicAddresses().filter((address) => isIP(address) === (type === "A" ? 4 : 6));
}

/**
 * Compares the addresses of a record with those of this machine's network cards; behind NAT these have no public one.
 */
export function judgeAddresses(found: string[], own: string[]): Finding {
  if (own.length === 0)
    return {
      status: "verified",
      found,
      reason: "It is there. Whether it is this machine cannot be seen from behind its router.",
    };
  if (own.some((address) => found.includes(address)))
    return { status: "verified", found, reason: "It is this machine." };
  return mismatch(found, `It is another machine: this one has ${own.join(" and ")}.`);
}

/**
 * Judges the reverse entry of an address: the name in it must lead back to that address (RFC 1912 §2.1), from which
 * `host` came.
 */
function judgePtr(found: string[], host: string): Finding {
  if (found.some((name) => hostName(name) === hostName(host)))
    return { status: "verified", found, reason: `It is there, and ${host} leads back to it.` };
  return mismatch(
    found,
    `Its reverse entry is another name, and many servers refuse mail from such an address. Set it to ${host} in the panel of your provider.`,
  );
}

/** Judges the SPF record by its text and, where it is another one, by what a receiver would make of it. */
async function lookForSpf(app: App, { name }: WantedRecord): Promise<Finding> {
  const { hostname } = app.config.smtp;
  const [texts, mx] = await Promise.all([askTexts(app, name), ask(app, name, "MX")]);
  if (app.config.outbound.mode === "relay") return judged(texts, (all) => judgeRelaySpf(all.filter(isSpf)));
  const is_mx = "records" in mx && judgeMx(mx.records, hostname).status === "verified";
  const finding = judged(texts, (all) => judgeSpf(all.filter(isSpf), { host: hostname, is_mx }));
  if (finding.status !== "mismatch" || finding.found.length !== 1) return finding;
  const { value: _, ...seen } = finding;
  const addresses = await addressesOf(app, hostname);
  const results = await Promise.all(
    addresses.map((ip) => spfResult(app.resolver, { domain: name, ip, hostname })),
  );
  const passes = results.length > 0 && results.every((result) => result === "pass");
  return passes ? { ...seen, status: "verified", reason: "It lets this server send." } : finding;
}

/** Judges the SPF record where a relay sends: only the relay's provider knows what it should say. */
function judgeRelaySpf(found: string[]): Finding {
  if (found.length === 1)
    return { status: "verified", found, reason: "It is there. See that it names your relay." };
  return found.length === 0
    ? { status: "missing", found, reason: "There is no SPF record yet, so that replies are trusted less." }
    : mismatch(
        found,
        "There are several SPF records, which counts as none. Leave one, which names your relay.",
      );
}

function judgeMtaSts(found: string[], value: string): Finding {
  const records = found.filter((text) => /^v=STSv1\s*;/.test(text));
  if (records.length !== 1)
    return mismatch(found, "This name needs exactly one TXT record that begins with v=STSv1.");
  if (records[0]?.replaceAll(/\s+|;$/g, "") === value.replaceAll(/\s+/g, ""))
    return { status: "verified", found: records, reason: "It is there." };
  return mismatch(records, "The policy has changed since: publish the new id, so that others fetch it anew.");
}
