import { isIP } from "node:net";
import type { App } from "../../app.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { spfResult } from "../../mail/reading/spf-check.ts";
import { ask, askDmarc, askTexts, judged } from "./ask.ts";
import { bounded, lookForKeys } from "./findings.ts";
import { hostName, judgeDmarc, judgeMx, judgeSpf, mismatch } from "./judge.ts";
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
  // At once, as all that can be: each may take as long as a DNS is waited for that does not answer.
  const [known, keys] = await Promise.all([addressesOf(app, hostname), lookForKeys(app, domain, rows)]);
  const wanted = await serviceRecords(app, publicAddresses(), known.length > 0 ? known : publicAddresses());
  return Promise.all(wanted.map((record) => checked(app, record, keys)));
}

async function checked(
  app: App,
  record: WantedRecord,
  keys: Record<string, Finding>,
): Promise<CheckedRecord> {
  const selector = record.name.split(".")[0] ?? "";
  const finding = record.purpose === "dkim" ? keys[selector] : await LOOKS[record.purpose](app, record);
  const { value = record.value, ...seen } = bounded(finding ?? UNKNOWN);
  return { ...record, ...seen, value };
}

/** Returns the addresses of a host, as far as the DNS says them. */
export async function addressesOf(app: App, host: string): Promise<string[]> {
  return (await lookForHost(app, host)).addresses;
}

/** Looks for the addresses of a host. Where the DNS is silent, that none were found tells nothing of the host. */
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

/** A key that came to be a moment ago. */
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

/** What this machine's own network cards say counts; behind NAT they say nothing. */
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

/** RFC 1912 §2.1: the name that an address has must have that address; it came from there. */
function judgePtr(found: string[], host: string): Finding {
  if (found.some((name) => hostName(name) === hostName(host)))
    return { status: "verified", found, reason: `It is there, and ${host} leads back to it.` };
  return mismatch(
    found,
    `Its reverse entry is another name, and many servers refuse mail from such an address. Set it to ${host} in the panel of your provider.`,
  );
}

/** By its text, and where another text means the same, by what a receiver would make of it. */
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

/** What it should say only the relay's provider knows. */
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
