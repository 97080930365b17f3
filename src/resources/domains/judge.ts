import type { DkimKeyRow } from "../../db/schema.ts";
import type { DnsAnswers } from "../../net/dns-reply.ts";
import { type Finding, MAX_FOUND } from "./records.ts";
import { allowsHost, withHost } from "./spf.ts";

type DkimPublic = Pick<DkimKeyRow, "algorithm" | "public_part">;

export function judgeOwnership(found: string[], value: string): Finding {
  if (found.includes(value)) return { status: "verified", found: [value], reason: "It is there." };
  return mismatch(
    found,
    "This name has a TXT record, but not with this value. Compare the two, character by character.",
  );
}

export function judgeMx(records: DnsAnswers["MX"], host: string): Finding {
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

export function judgeSpf(found: string[], { host, is_mx }: { host: string; is_mx: boolean }): Finding {
  const [only] = found;
  if (only === undefined)
    return {
      status: "missing",
      found: [],
      reason: "There is no SPF record yet. Publish it, so that replies are trusted.",
    };
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

export function judgeDkim(found: string[], key: DkimPublic): Finding {
  const right = found.some((text) => isKeyRecord(text, key));
  if (right && found.length === 1) return { status: "verified", found, reason: "It is there." };
  return mismatch(
    found,
    right
      ? "The key is there, but beside other records of this name, which confuses receivers. Remove the others."
      : "The record does not hold the key of this domain. It is long: see that nothing of it was cut off.",
  );
}

/** Whether a text is the record of a key (RFC 6376 §3.6.1). */
function isKeyRecord(text: string, { public_part, algorithm }: DkimPublic): boolean {
  const tags = new Map(
    text.split(";").map((tag) => {
      const equals = tag.indexOf("=");
      return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replaceAll(/\s+/g, "")];
    }),
  );
  return (
    tags.get("p") === public_part &&
    (tags.get("k") ?? "rsa") === algorithm &&
    (tags.get("v") ?? "DKIM1") === "DKIM1"
  );
}

export function judgeDmarc(found: string[]): Finding {
  const policies = found.filter(isDmarc);
  if (policies.length === 1)
    return { status: "verified", found: policies, reason: "There is a policy; any will do." };
  if (policies.length > 1)
    return mismatch(policies, "There are several DMARC records, which counts as none. Leave one.");
  return mismatch(found, "This name has a TXT record, but none that begins with v=DMARC1.");
}

export function isDmarc(text: string): boolean {
  return /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text);
}

/**
 * A host name in the form in which it is compared: names are the same in any case, and with or without the dot of the
 * root (RFC 4343).
 */
export function hostName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

export function mismatch(found: string[], reason: string): Finding {
  return { status: "mismatch", found, reason };
}
