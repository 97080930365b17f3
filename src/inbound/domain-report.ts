import { gunzipSync } from "node:zlib";
import { readZipTable, unpackEntry } from "../files/zip.ts";
import { member, parseJson } from "../lib/foreign-json.ts";
import type { MailHeaders } from "../mail/reading/headers.ts";
import type { MailAttachment } from "../mail/reading/parse.ts";
import { readStructure } from "../mail/reading/parse-structure.ts";

/** Bytes of the largest report that is unpacked; reports about a small server take a few KB. */
const MAX_UNPACKED_BYTES = 2_097_152;
/** Bytes of a mail that holds such a report unpacked, in base64. */
const MAX_MAIL_BYTES = 2 * MAX_UNPACKED_BYTES;
/** The most records (sources of mail, or failures) that are counted; those of a large provider are a few hundred. */
const MAX_RECORDS = 10_000;
/** The most files of a mail that are looked at: a report is one file, and some providers add words or a picture. */
const MAX_FILES = 4;
const MAX_NAME_CHARS = 100;

/** The summary of a report for one log line. */
export interface DomainReport {
  report: "dmarc" | "tls";
  /** Who reports, and about which domain; both are untrusted text. */
  by: string;
  domain: string;
  /** Mails (DMARC) or connections (TLS) in all. */
  total: number;
  failed: number;
  /** The most frequent cause of the failures, or the source of most. */
  mostly?: string;
}

/**
 * Returns what another provider reports about mail of ours: DMARC aggregates (RFC 7489 §7.2) and TLS reports (RFC
 * 8460); undefined for a mail that is no such report. Anybody can write one, so only the files that may hold a report
 * are looked at, and no other words of the mail.
 */
export async function readDomainReport(
  raw: Uint8Array,
  headers: MailHeaders,
): Promise<DomainReport | undefined> {
  if (raw.byteLength > MAX_MAIL_BYTES || !looksLikeReport(headers)) return undefined;
  const { files } = await readStructure(raw);
  for (const { bytes } of files.filter(mayHoldReport).slice(0, MAX_FILES)) {
    const report = reportIn(bytes);
    if (report !== undefined) return report;
  }
  return undefined;
}

/**
 * Returns whether a file may hold a report by its type; vague types count, because some providers do not declare their
 * archive's.
 */
function mayHoldReport({ content_type }: MailAttachment): boolean {
  return /^(?:application\/(?:tlsrpt\+|(?:x-)?gzip|(?:x-)?zip|xml|json|octet-stream)|text\/xml)/i.test(
    content_type,
  );
}

/**
 * Returns whether a mail looks like a report by its header (RFC 8460 §5.3 and RFC 7489 §7.2.1.1), so that people's
 * mails are not unpacked.
 */
function looksLikeReport(headers: MailHeaders): boolean {
  const type = headers.get("content-type") ?? "";
  return (
    /report-type\s*=\s*"?tlsrpt\b/i.test(type) ||
    /^(?:application\/(?:tlsrpt\+|(?:x-)?gzip|(?:x-)?zip|xml)|text\/xml)/i.test(type) ||
    headers.get("tls-report-domain") !== undefined ||
    /^\s*(?:\[[^\]]{0,40}\]\s*)?report\s+domain:/i.test(headers.get("subject") ?? "")
  );
}

function reportIn(bytes: Uint8Array): DomainReport | undefined {
  const text = unpack(bytes);
  return text?.startsWith("{") ? tlsSummary(text) : text?.startsWith("<") ? dmarcSummary(text) : undefined;
}

/** Returns the text of a file that may be packed; undefined if the file is broken or too large. */
function unpack(bytes: Uint8Array): string | undefined {
  try {
    const plain =
      bytes[0] === 0x1f ? gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }) : unzip(bytes);
    return plain.byteLength > MAX_UNPACKED_BYTES
      ? undefined
      : new TextDecoder()
          .decode(plain)
          .replace(/^\ufeff/, "")
          .trimStart();
  } catch {
    // Whatever is wrong with a stranger's file, there is nobody to tell.
    return undefined;
  }
}

function unzip(bytes: Uint8Array): Uint8Array {
  const [first] = bytes[0] === 0x50 ? (readZipTable(bytes) ?? []) : [];
  if (!first) return bytes;
  return first.unpacked > MAX_UNPACKED_BYTES ? new Uint8Array() : unpackEntry(bytes, first);
}

function dmarcSummary(xml: string): DomainReport | undefined {
  if (!/<feedback[\s>]/.test(xml.slice(0, 4_096))) return undefined;
  const records = xml.split(/<record[\s>]/, MAX_RECORDS + 1).slice(1);
  const failures = new Map<string, number>();
  let [total, failed] = [0, 0];
  for (const record of records) {
    const count = Number(element(record, "count")) || 0;
    const verdict = element(record, "policy_evaluated");
    total += count;
    if (element(verdict, "dkim") === "pass" || element(verdict, "spf") === "pass") continue;
    failed += count;
    add(failures, element(record, "source_ip"), count);
  }
  const domain = named(element(element(xml, "policy_published"), "domain"));
  return { report: "dmarc", by: named(element(xml, "org_name")), domain, total, failed, ...mostly(failures) };
}

/** Returns the text between the first opening and closing tag of this name. */
function element(xml: string, name: string): string {
  const start = xml.indexOf(`<${name}>`);
  const end = xml.indexOf(`</${name}>`, start);
  return start < 0 || end < 0 ? "" : xml.slice(start + name.length + 2, end).trim();
}

function tlsSummary(json: string): DomainReport | undefined {
  const report = parseJson(json);
  const policies = listOf(member(report, "policies"));
  if (policies.length === 0) return undefined;
  const sum = (name: string): number =>
    policies.reduce<number>((all, policy) => all + countOf(member(member(policy, "summary"), name)), 0);
  const failures = new Map<string, number>();
  const details = policies.flatMap((policy) => listOf(member(policy, "failure-details")));
  for (const detail of details.slice(0, MAX_RECORDS))
    add(failures, String(member(detail, "result-type")), countOf(member(detail, "failed-session-count")));
  const failed = sum("total-failure-session-count");
  return {
    report: "tls",
    by: named(String(member(report, "organization-name"))),
    domain: named(String(member(member(policies[0], "policy"), "policy-domain"))),
    total: sum("total-successful-session-count") + failed,
    failed,
    ...mostly(failures),
  };
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_RECORDS) : [];
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}

function mostly(counts: Map<string, number>): { mostly?: string } {
  let most: [string, number] | undefined;
  for (const one of counts) if (most === undefined || one[1] > most[1]) most = one;
  return most ? { mostly: named(most[0]) } : {};
}

function named(text: string): string {
  return text
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .slice(0, MAX_NAME_CHARS)
    .trim();
}
