import { withShortBlanks } from "../lib/short-blanks.ts";
import type { Answer, DecodedPacket } from "dns-packet";
import { HOUR_SECONDS } from "../lib/durations.ts";

/** A TLSA record (RFC 6698 §2.1). */
export interface Tlsa {
  usage: number;
  selector: number;
  matching_type: number;
  /** The data in hexadecimal. */
  data: string;
}

/**
 * Error codes of `node:dns`; the first two are real answers, EBADNAME is a name that cannot exist. EINSECURE is our
 * own: there is an answer, but the name server has not validated it.
 */
export type DnsErrorCode =
  | "ENODATA"
  | "ENOTFOUND"
  | "ETIMEOUT"
  | "ESERVFAIL"
  | "EREFUSED"
  | "EBADNAME"
  | "EINSECURE";

/** The answers for each record type, in the shapes of `node:dns` `promises.resolve`. */
export interface DnsAnswers {
  A: string[];
  AAAA: string[];
  CNAME: string[];
  NS: string[];
  PTR: string[];
  MX: { exchange: string; priority: number }[];
  /** One entry per record; a record longer than 255 octets comes as several strings. */
  TXT: string[][];
  TLSA: Tlsa[];
}

/**
 * A definite outcome of one lookup, with its TTL and approximate size. `validated`: by DNSSEC, as the name server says.
 */
export type DnsOutcome = { ttl_seconds: number; bytes: number; validated: boolean } & (
  | { values: DnsAnswers[keyof DnsAnswers] }
  | { error: DnsErrorCode; unreached?: true }
);

const MAX_TTL_SECONDS = HOUR_SECONDS;
/** How long a negative answer is cached: short, for operators who have just published the record. */
const MAX_NEGATIVE_TTL_SECONDS = 30;
const MAX_CNAME_HOPS = 8;
/** Room for the key of an RSA signature of 16,384 bits; SPF asks for no more than 450 octets (RFC 7208 §3.4). */
const MAX_TEXT_CHARS = 4_096;
/** A macro of SPF stands for up to 255 characters that a stranger chooses (RFC 7208 §7). */
const MAX_MACROS = 16;

/** Returns the outcome in a reply, or the error code if another server may do better. */
export function readReply(
  reply: DecodedPacket,
  question: { name: string; rrtype: keyof DnsAnswers },
): DnsOutcome | DnsErrorCode {
  // The declared type lacks it, yet every decoded packet carries the code by name.
  const { rcode } = reply as DecodedPacket & { rcode: string };
  if (rcode === "NXDOMAIN") return negative(reply, "ENOTFOUND");
  if (rcode === "REFUSED") return "EREFUSED";
  if (rcode !== "NOERROR") return "ESERVFAIL";
  const chain = followAliases(reply.answers ?? [], question);
  if (chain.records.length === 0) return negative(reply, "ENODATA");
  const ttls = [...chain.aliases, ...chain.records].map((record) => ttlOf(record));
  return {
    values: chain.records.map(valueOf) as DnsAnswers[keyof DnsAnswers],
    validated: reply.flag_ad,
    ttl_seconds: Math.min(MAX_TTL_SECONDS, ...ttls),
    bytes: chain.records.reduce((sum, record) => sum + sizeOf(record), 0),
  };
}

function followAliases(answers: Answer[], question: { name: string; rrtype: keyof DnsAnswers }) {
  const aliases: Answer[] = [];
  let owner = question.name;
  for (let hop = 0; hop <= MAX_CNAME_HOPS; hop++) {
    const own = answers.filter((answer) => answer.name.toLowerCase() === owner);
    const records = own.filter((answer) => answer.type === question.rrtype);
    const alias = own.find((answer) => answer.type === "CNAME");
    if (records.length > 0 || alias?.type !== "CNAME") return { aliases, records };
    aliases.push(alias);
    owner = alias.data.toLowerCase();
  }
  return { aliases, records: [] };
}

/**
 * Returns a negative outcome. Its TTL is the smaller of the SOA's own TTL and its minimum (RFC 2308 §5); without a SOA
 * it is not cached.
 */
function negative(reply: DecodedPacket, error: DnsErrorCode): DnsOutcome {
  const soa = reply.authorities?.find((record) => record.type === "SOA");
  const ttl = soa ? Math.min(soa.ttl ?? 0, soa.data.minimum ?? 0, MAX_NEGATIVE_TTL_SECONDS) : 0;
  return { error, validated: reply.flag_ad, ttl_seconds: ttl, bytes: 0 };
}

function ttlOf(record: Answer): number {
  return record.type === "OPT" ? 0 : (record.ttl ?? 0);
}

function valueOf(record: Answer): unknown {
  switch (record.type) {
    case "TXT":
      return shownTexts([record.data].flat().map((part) => part.toString()));
    case "MX":
      return { exchange: record.data.exchange, priority: record.data.preference ?? 0 };
    case "TLSA":
      return {
        usage: record.data.usage,
        selector: record.data.selector,
        matching_type: record.data.matchingType,
        data: record.data.certificate.toString("hex"),
      } satisfies Tlsa;
    case "A":
    case "AAAA":
    case "CNAME":
    case "NS":
    case "PTR":
      return record.data;
    default:
      throw new Error(`a ${record.type} record was taken for an answer`);
  }
}

/**
 * The strings of a TXT record, as one where it has long runs of blanks, which may go over the ends of strings. A longer
 * one than any real record is empty, as is one that macros make longer: what reads records takes the square of some, in
 * patterns that nothing ends.
 */
function shownTexts(parts: string[]): string[] {
  const text = parts.join("");
  const short = withShortBlanks(text);
  if (short.length > MAX_TEXT_CHARS || short.split("%").length - 1 > MAX_MACROS) return [""];
  return short === text ? parts : [short];
}

function sizeOf(record: Answer): number {
  return record.type === "TXT" ? [record.data].flat().reduce((sum, part) => sum + part.length, 0) : 64;
}
