import type { Resolver } from "../net/dns.ts";
import { type DkimKeys, type DnsRecord, dnsRecords } from "../mail/writing/dkim.ts";
import { fromMailbox, readHeaders } from "../mail/reading/headers.ts";
import { verifySignatures } from "../mail/reading/signatures.ts";

/**
 * Returns the algorithms whose signature on `raw` a receiver would accept, if the DNS had our records. Checks each key
 * separately, with a DNS that has only its record: together, one valid signature would hide an invalid one.
 */
export async function acceptedSignatures(raw: Buffer, domain: string, keys: DkimKeys): Promise<string[]> {
  const headers = readHeaders(raw);
  const from = fromMailbox(headers);
  if (!from.ok) return [];
  const accepted: string[] = [];
  for (const key of keys) {
    const mail = {
      raw,
      headers,
      from: { address: from.address },
      remote_address: "127.0.0.1",
      helo: domain,
      mail_from: "",
      hostname: domain,
      resolver: dnsWith(dnsRecords([key], domain)),
    };
    const check = await verifySignatures(mail, new AbortController().signal);
    if (check.result === "pass" && check.aligned.includes(domain)) accepted.push(key.algorithm);
  }
  return accepted;
}

/** Returns a resolver with only these records. */
function dnsWith(records: DnsRecord[]): Resolver {
  const resolve = (name: string): Promise<string[][]> => {
    const found = records.filter((record) => record.name === name).map(({ value }) => [value]);
    const missing = Object.assign(new Error(`There is no ${name}.`), { code: "ENOTFOUND" });
    return found.length > 0 ? Promise.resolve(found) : Promise.reject(missing);
  };
  return resolve as Resolver;
}
