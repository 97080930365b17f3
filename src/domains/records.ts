import type { App } from "../app.ts";
import type { CustomDomainRow } from "../db/schema.ts";
import { withHost } from "./spf.ts";

/** RFC 5321 §5.1: the lower, the earlier it is tried. */
const MX_PRIORITY = 10;

export type Purpose = "ownership" | "inbound_mx" | "spf" | "dkim" | "dmarc";

/** What one check saw of one record. `pending`: the DNS has not said. */
export interface Finding {
  status: "verified" | "missing" | "mismatch" | "pending";
  /** What is published there, as far as it matters for this record. */
  found: string[];
  reason: string;
  /** What to publish instead of the usual value, because of what is there already. */
  value?: string;
}

export type Findings = Record<Purpose, Finding>;

interface PublishedRecord {
  type: "TXT" | "MX";
  /** Without a dot at the end. */
  name: string;
  value: string;
  priority: number | null;
  purpose: Purpose;
  /** Whether the domain works only with it. */
  required: boolean;
}

type RecordView = PublishedRecord & Omit<Finding, "value">;

/** The records of a domain: what to publish, and what the last check saw of it. */
export function recordViews(app: App, row: CustomDomainRow, owner_email: string): RecordView[] {
  const findings = JSON.parse(row.findings) as Partial<Findings>;
  return recordsOf(app, row, owner_email).map((record) => {
    const { value = record.value, ...seen } = findings[record.purpose] ?? UNCHECKED;
    return Object.assign(record, seen, { value });
  });
}

const UNCHECKED: Finding = {
  status: "pending",
  found: [],
  reason: "It has not been looked for yet. Publish it, then verify the domain.",
};

export function ownershipName(domain: string): string {
  return `_mailwright.${domain}`;
}

export function ownershipValue(row: Pick<CustomDomainRow, "ownership_token">): string {
  return `mailwright-verify=${row.ownership_token}`;
}

export function dkimName(row: Pick<CustomDomainRow, "dkim_selector" | "domain">): string {
  return `${row.dkim_selector}._domainkey.${row.domain}`;
}

export function dmarcName(domain: string): string {
  return `_dmarc.${domain}`;
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
    { ...text, name: dkimName(row), value: `v=DKIM1; k=rsa; p=${row.dkim_public}`, purpose: "dkim" },
    {
      ...text,
      name: dmarcName(row.domain),
      value: `v=DMARC1; p=none; rua=mailto:${inUri(owner_email)}`,
      purpose: "dmarc",
    },
  ];
}

/** RFC 7489 §6.2: commas and exclamation marks would end the address. */
function inUri(address: string): string {
  return encodeURIComponent(address).replaceAll("%40", "@").replaceAll("!", "%21");
}
