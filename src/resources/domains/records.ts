import type { App } from "../../app.ts";
import type { CustomDomainRow, DkimKeyRow } from "../../db/schema.ts";
import { dkimRecord } from "../../mail/writing/dkim.ts";
import { OVERLAP_SECONDS } from "../../mail/writing/dkim-rotation.ts";
import { withHost } from "./spf.ts";
import { dayAt } from "../../lib/durations.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** The priority in the MX record; servers with a lower one are tried first (RFC 5321 §5.1). */
export const MX_PRIORITY = 10;
/** The most values of one record that are shown: other people publish them. */
export const MAX_FOUND = 10;

export type Purpose = "ownership" | "inbound_mx" | "spf" | "dkim" | "dmarc";

/** What one check saw of one record. `pending`: the DNS did not answer. */
export interface Finding {
  status: "verified" | "missing" | "mismatch" | "pending";
  /** The values that are published, as far as they matter for this record. */
  found: string[];
  reason: string;
  /** The value to publish instead of the usual one, because of what is published already. */
  value?: string;
}

export type Findings = Record<Exclude<Purpose, "dkim">, Finding> & {
  /** The findings of the keys' records, by selector. */
  dkim: Record<string, Finding>;
};

interface PublishedRecord {
  type: "TXT" | "MX";
  /** The name of the record, without a dot at the end. */
  name: string;
  value: string;
  priority: number | null;
  purpose: Purpose;
  /** Whether the domain works only with it. */
  required: boolean;
}

export type RecordView = PublishedRecord & Omit<Finding, "value">;

const UNCHECKED: Finding = {
  status: "pending",
  found: [],
  reason: "It has not been looked for yet. Publish it, then have it looked for.",
};

/** The records of a domain, with what the last check saw of them. */
export function recordViews(
  app: App,
  row: CustomDomainRow,
  { owner_email, keys }: { owner_email: string; keys: DkimKeyRow[] },
): RecordView[] {
  return viewsWith(app, row, {
    owner_email,
    keys,
    findings: storedJson<Partial<Findings>>(row.findings, {}),
  });
}

/** As `recordViews`, with the findings of a check at hand. */
export function viewsWith(
  app: App,
  row: CustomDomainRow,
  seen: { owner_email: string; keys: DkimKeyRow[]; findings: Partial<Findings> },
): RecordView[] {
  const { findings, keys } = seen;
  return recordsOf(app, row, seen.owner_email).flatMap((record): RecordView[] => {
    if (record.purpose === "dkim") return keyViews(keys, row.domain, findings.dkim ?? {});
    const { value = record.value, ...rest } = findings[record.purpose] ?? UNCHECKED;
    return [{ ...record, ...rest, value }];
  });
}

const STATE_ORDER = ["signing", "waiting", "retired", "dropped"] as const;

/** The records of a domain's keys, those in use first; each says what to do about its key. */
function keyViews(keys: DkimKeyRow[], domain: string, found: Record<string, Finding>): RecordView[] {
  const sorted = STATE_ORDER.flatMap((state) => keys.filter((key) => key.state === state));
  return sorted.map((key) => keyView(key, domain, found[key.selector] ?? UNCHECKED));
}

function keyView(key: DkimKeyRow, domain: string, { status, found, reason }: Finding): RecordView {
  const record = { ...dkimRecord(key, domain), priority: null, purpose: "dkim", required: false } as const;
  return { ...record, status, found, reason: keyAdvice(key) ?? reason };
}

/** What to do about the record of a key; undefined where it is to be published like any other. */
export function keyAdvice({ state, retired_at }: DkimKeyRow): string | undefined {
  if (state === "retired") {
    const until = dayAt((retired_at ?? 0) + OVERLAP_SECONDS);
    return `A new key signs now. Keep this record until ${until}, for mail that is still on its way.`;
  }
  return state === "dropped" ? "Nothing needs this record any more: remove it." : undefined;
}

export function ownershipName(domain: string): string {
  return `_mailwright.${domain}`;
}

export function ownershipValue(row: Pick<CustomDomainRow, "ownership_token">): string {
  return `mailwright-verify=${row.ownership_token}`;
}

export function dmarcName(domain: string): string {
  return `_dmarc.${domain}`;
}

export function dmarcValue(reports_to: string): string {
  return `v=DMARC1; p=none; rua=mailto:${inUri(reports_to)}`;
}

function recordsOf(app: App, row: CustomDomainRow, owner_email: string): PublishedRecord[] {
  const host = app.config.smtp.hostname;
  const text = { type: "TXT", priority: null, required: false } as const;
  return [
    {
      ...text,
      name: ownershipName(row.domain),
      value: ownershipValue(row),
      purpose: "ownership",
      required: true,
    },
    {
      type: "MX",
      name: row.domain,
      value: host,
      priority: MX_PRIORITY,
      purpose: "inbound_mx",
      required: true,
    },
    { ...text, name: row.domain, value: withHost([], host), purpose: "spf" },
    { ...text, name: "", value: "", purpose: "dkim" },
    { ...text, name: dmarcName(row.domain), value: dmarcValue(owner_email), purpose: "dmarc" },
  ];
}

/** An address as it stands in a DMARC record, where commas and exclamation marks would end it (RFC 7489 §6.2). */
function inUri(address: string): string {
  return encodeURIComponent(address).replaceAll("%40", "@").replaceAll("!", "%21");
}
