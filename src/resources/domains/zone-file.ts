import { registrableDomain } from "../../net/domain-owner.ts";
import type { WantedRecord } from "./service-records.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** The longest string in a TXT record (RFC 1035 §3.3). */
const MAX_STRING_CHARS = 255;
const TTL_SECONDS = HOUR_SECONDS;

type ZoneRecord = Pick<WantedRecord, "type" | "name" | "value" | "priority" | "note">;

/**
 * The records as a zone file (RFC 1035 §5). Records of other zones, and those without a known value, stand in
 * comments.
 */
export function zoneFile(domain: string, records: ZoneRecord[]): string {
  const origin = registrableDomain(domain) ?? domain;
  const mail_host = records.find(({ type }) => type === "MX")?.value ?? domain;
  return [
    `; What Mailwright needs in the DNS for ${domain}.`,
    "; SOA and NS stand for your own: leave them out where the zone is there already.",
    `$ORIGIN ${origin}.`,
    `$TTL ${TTL_SECONDS}`,
    `@ IN SOA ${mail_host}. hostmaster.${origin}. 1 7200 900 1209600 300`,
    "@ IN NS ns.invalid.",
    ...records.flatMap((record) => linesOf(record, origin)),
    "",
  ].join("\n");
}

function linesOf(record: ZoneRecord, origin: string): string[] {
  const { name, type, value, note } = record;
  const comment = `; ${note.replaceAll(/\p{C}/gu, " ")}`;
  const inside = name === origin || name.endsWith(`.${origin}`);
  const line = `${name}. IN ${type} ${dataOf(record)}`;
  if (inside && value !== null) return [comment, line];
  return [
    value === null ? `${comment}, which is not known here:` : `${comment}; in another zone:`,
    `; ${line}`,
  ];
}

function dataOf({ type, value, priority }: ZoneRecord): string {
  if (value === null) return "…";
  if (type === "TXT") return strings(value);
  if (type === "MX") return `${priority ?? 0} ${value}.`;
  return type === "A" || type === "AAAA" ? value : `${value}.`;
}

/** A text in quotes, in several strings if one would be too long. */
function strings(text: string): string {
  const parts = text.match(new RegExp(`.{1,${MAX_STRING_CHARS}}`, "g")) ?? [""];
  return parts.map((part) => `"${part.replaceAll(/["\\]/g, "\\$&")}"`).join(" ");
}
