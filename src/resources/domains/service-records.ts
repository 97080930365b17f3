import { urlOf } from "../../lib/web-address.ts";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { isPublicHost, splitListen } from "../../config/forms.ts";
import type { DkimKeyRow } from "../../db/schema.ts";
import { isPublicAddress } from "../../net/guarded-fetch.ts";
import { dkimRecord } from "../../mail/writing/dkim.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { dmarcName, dmarcValue, keyAdvice, MX_PRIORITY } from "./records.ts";
import { mtaStsHost, mtaStsRecord } from "./own-mta-sts.ts";
import { withHost } from "./spf.ts";

export type ServicePurpose =
  | "address"
  | "inbound_mx"
  | "spf"
  | "dkim"
  | "dmarc"
  | "ptr"
  | "mta_sts"
  | "mta_sts_host"
  | "tls_rpt";

/** A record that somebody is to publish. */
export interface WantedRecord {
  type: "A" | "AAAA" | "CNAME" | "MX" | "TXT" | "PTR";
  /** The name of the record, without a dot at the end. */
  name: string;
  /** The value to publish; null where only the operator knows it. */
  value: string | null;
  priority: number | null;
  purpose: ServicePurpose;
  /** Whether mail suffers without it. */
  required: boolean;
  note: string;
}

/**
 * All records to publish for the service's own domain. `addresses`: those of this machine, by default of its network
 * cards. `reverse`: the addresses whose reverse entries matter, by default the same.
 */
export async function serviceRecords(
  app: App,
  addresses: string[] = publicAddresses(),
  reverse: string[] = addresses,
): Promise<WantedRecord[]> {
  const { hostname, domain } = app.config.smtp;
  const text = { type: "TXT", priority: null } as const;
  return [
    ...addressRecords(app.config, addresses),
    {
      type: "MX",
      name: domain,
      value: hostname,
      priority: MX_PRIORITY,
      purpose: "inbound_mx",
      required: true,
      note: "mail for the domain goes to this server",
    },
    { ...text, name: domain, purpose: "spf", ...spfPart(app.config) },
    ...(await keyRecords(app)),
    {
      ...text,
      name: dmarcName(domain),
      value: dmarcValue(`postmaster@${domain}`),
      purpose: "dmarc",
      required: false,
      note: "what receivers do with forgeries; tighten it to p=quarantine once all is well",
    },
    ...mtaStsRecords(app.config),
    ...reverse.map((address) => ptrRecord(app.config, address)),
  ];
}

/**
 * Whether this server delivers mail itself, so that the reputation of its own address matters; with a relay, others
 * see that of the relay.
 */
export function sendsItself({ outbound }: Config): boolean {
  return outbound.mode === "direct";
}

/** The addresses of this machine's own network cards that are on the public internet: none behind NAT. */
export function publicAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((cards) => cards ?? []);
  const found = all.filter(({ internal, address }) => !internal && isPublicAddress(address));
  return [4, 6].flatMap((family) => found.find(({ address }) => isIP(address) === family)?.address ?? []);
}

/**
 * The name of the reverse entry of an address: `7.113.0.203.in-addr.arpa` (RFC 1035 §3.5), `….ip6.arpa` (RFC 3596
 * §2.5).
 */
function reverseName(address: string): string {
  const bytes = ipaddr.process(address).toByteArray();
  if (bytes.length === 4) return `${bytes.toReversed().join(".")}.in-addr.arpa`;
  const digits = Buffer.from(bytes).toString("hex").split("");
  return `${digits.toReversed().join(".")}.ip6.arpa`;
}

function addressRecords({ smtp }: Config, known: string[]): WantedRecord[] {
  const v4 = known.find((address) => isIP(address) === 4);
  const v6 = known.find((address) => isIP(address) === 6);
  const record = { name: smtp.hostname, priority: null, purpose: "address" } as const;
  const heard_over_v6 = splitListen(smtp.listen)?.host.includes(":") === true;
  const a: WantedRecord = {
    ...record,
    type: "A",
    value: v4 ?? null,
    required: true,
    note: v4 ? "this machine" : "the public IPv4 address of this machine",
  };
  const aaaa: WantedRecord = {
    ...record,
    type: "AAAA",
    value: v6 ?? null,
    required: false,
    note: "this machine, over IPv6",
  };
  return v6 !== undefined && heard_over_v6 ? [a, aaaa] : [a];
}

/**
 * The SPF record. With a relay it has no value, as only its provider knows who sends: a record that names this server
 * alone would disown every answer.
 */
function spfPart(config: Config): Pick<WantedRecord, "value" | "required" | "note"> {
  return config.outbound.mode === "relay"
    ? {
        value: null,
        required: false,
        note: "what the provider of your relay says, such as v=spf1 include:… ~all",
      }
    : {
        value: withHost([], config.smtp.hostname),
        required: sendsItself(config),
        note: "who may send for the domain",
      };
}

async function keyRecords(app: App): Promise<WantedRecord[]> {
  const { domain } = app.config.smtp;
  const keys = (await keyRows(app.db, null)).filter(({ state }) => state !== "dropped");
  return keys.map((key) => keyRecord(key, domain));
}

function keyRecord(key: DkimKeyRow, domain: string): WantedRecord {
  const usual = key.state === "waiting" ? "the next signature, once this is seen" : "the signature";
  return {
    ...dkimRecord(key, domain),
    priority: null,
    purpose: "dkim",
    required: key.algorithm === "rsa" && key.state === "signing",
    note: keyAdvice(key) ?? usual,
  };
}

function mtaStsRecords(config: Config): WantedRecord[] {
  const { hostname, domain, mta_sts } = config.smtp;
  if (mta_sts === "off") return [];
  const web = urlOf(config.server.base_url)?.hostname ?? "";
  const record = { priority: null, required: false } as const;
  return [
    {
      ...record,
      type: "TXT",
      name: `_mta-sts.${domain}`,
      value: mtaStsRecord(config),
      purpose: "mta_sts",
      note: "others send over TLS only",
    },
    {
      ...record,
      type: "CNAME",
      name: mtaStsHost(config),
      value: isPublicHost(web) ? web : hostname,
      purpose: "mta_sts_host",
      note: "where the policy is fetched over HTTPS",
    },
    {
      ...record,
      type: "TXT",
      name: `_smtp._tls.${domain}`,
      value: `v=TLSRPTv1; rua=mailto:postmaster@${domain}`,
      purpose: "tls_rpt",
      note: "where others report trouble with TLS",
    },
  ];
}

function ptrRecord(config: Config, address: string): WantedRecord {
  return {
    type: "PTR",
    name: reverseName(address),
    value: config.smtp.hostname,
    priority: null,
    purpose: "ptr",
    required: sendsItself(config),
    note: `the reverse entry of ${address}: set it in the panel of your provider`,
  };
}
