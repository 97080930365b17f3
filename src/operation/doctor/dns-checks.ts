import { UNREACHED } from "../../resources/domains/ask.ts";
import { type CheckedRecord, checkServiceRecords } from "../../resources/domains/service-check.ts";
import { canBeLookedUp } from "../../resources/domains/nameless.ts";
import { dnsErrorCode, isNoRecord } from "../../net/dns.ts";
import { createNameServers, nameServerNames } from "../../net/name-servers.ts";
import { type Bench, type Check, fail, type Finding, ok, type Outcome, skip, warn } from "./check.ts";

const TITLES: Record<CheckedRecord["purpose"], string> = {
  address: "address of the mail host",
  inbound_mx: "MX",
  spf: "SPF",
  dkim: "DKIM",
  dmarc: "DMARC",
  ptr: "reverse entry",
  mta_sts: "MTA-STS record",
  mta_sts_host: "MTA-STS host",
  tls_rpt: "TLS reports",
};

/** Advice when a DNS query gets no answer: the fault may be the resolver's, or that of one domain. */
export const SEE_RESOLVER =
  'If the line "name server" is not ok, mend that first (dns.servers). If it is, the fault is with the name servers of that domain: see that they are up, and that no DS record of an earlier provider is left at its registrar.';

export const DNS_CHECKS: Check[] = [
  { name: "name server", run: checkResolver },
  { name: "DNS records", run: checkRecords },
  { name: "custom domains", run: checkCustomDomains },
];

/** Checks the resolver with a query about another domain, which every resolver for mail servers must answer. */
async function checkResolver({ app, targets }: Bench): Promise<Outcome> {
  const servers = nameServerNames(createNameServers(app.config.dns.servers)());
  try {
    await app.resolver(targets.mail_domain, "MX", { fresh: true });
  } catch (error) {
    const code = dnsErrorCode(error);
    if (code === undefined) throw error;
    if (!isNoRecord(error)) {
      const [words, mend] = SILENCE[code] ?? ["cannot be used", OTHER_SERVER];
      return fail(`${servers} ${words} (asked for the MX of ${targets.mail_domain}: ${code}).`, mend);
    }
  }
  return ok(`${servers} answers.`);
}

const OTHER_SERVER =
  'Name another one in dns.servers. Best is a resolver of your own on this machine, such as unbound: dns.servers = ["127.0.0.1"].';
const SILENCE: Record<string, [words: string, mend: string]> = {
  EREFUSED: [
    "refuses to answer this machine",
    `Either it serves its own domains only, or it must be told that this machine may ask (unbound: access-control, BIND: allow-recursion). ${OTHER_SERVER}`,
  ],
  ESERVFAIL: [
    "cannot be reached, or fails to find an answer (SERVFAIL)",
    `Restart it and see its log: often it cannot reach the net itself, or its clock is wrong, which breaks DNSSEC. ${OTHER_SERVER}`,
  ],
  ETIMEOUT: [
    "does not answer",
    `See that the firewall lets this machine out to port 53, over UDP and TCP. ${OTHER_SERVER}`,
  ],
};

async function checkRecords({ app }: Bench): Promise<Outcome | Finding[]> {
  const { domain } = app.config.smtp;
  if (!canBeLookedUp(domain))
    return fail(
      `smtp.domain is "${domain}", to which nobody outside can write.`,
      "Set smtp.hostname to the public name of this machine and smtp.domain to the domain of the addresses.",
    );
  const records = await checkServiceRecords(app);
  if (records.some(({ reason }) => reason === UNREACHED))
    return skip(
      'No record can be looked up while no name server can be reached: see the line "name server".',
    );
  const findings = records.map((record) => ({ name: nameOf(record), ...outcomeOf(record) }));
  return records.some(({ purpose }) => purpose === "ptr") ? findings : [...findings, NO_PTR];
}

const NO_PTR: Finding = {
  name: TITLES.ptr,
  ...skip("It cannot be looked for before the mail host has an address in the DNS."),
};

function nameOf({ purpose, type, name, value }: CheckedRecord): string {
  if (purpose === "address") return `${TITLES.address} (${type})`;
  if (purpose === "dkim") return `${TITLES.dkim} ${name.split(".")[0]} (${/k=(\w+)/.exec(value ?? "")?.[1]})`;
  return TITLES[purpose];
}

function outcomeOf(record: CheckedRecord): Outcome {
  const { status, required, reason, found, name, type, value, priority, note } = record;
  const seen = found.length === 0 ? "" : ` Found: ${found.join(" | ")}`;
  const words = `${name} ${type}: ${reason}${seen}`;
  if (status === "verified") return ok(words);
  const data = [priority, value].filter((part) => part !== null).join(" ");
  const mend = `Publish: ${name} ${type} ${value === null ? `(${note})` : data}`;
  if (status === "pending") return warn(words, SEE_RESOLVER);
  return required ? fail(words, mend) : warn(words, mend);
}

/** Checks custom domains by the last result of their daily checks. */
async function checkCustomDomains({ app }: Bench): Promise<Outcome> {
  const rows = await app.db
    .selectFrom("custom_domains")
    .select(["domain", "error"])
    .where("status", "=", "active")
    .execute();
  if (rows.length === 0) return skip("No custom domain is active.");
  const broken = rows.filter(({ error }) => error !== null).map(({ domain }) => domain);
  if (broken.length === 0) return ok(`${rows.length} active, and their records are there.`);
  return warn(
    `Of ${rows.length} active ones, the records of ${broken.slice(0, 10).join(", ")} were not right when last looked at.`,
    `See what they need: mailwright dns check ${broken[0]}`,
  );
}
