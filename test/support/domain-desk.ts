import type { ConfigOverrides } from "../../src/config/config.ts";
import { type Caller, testApp, type TestApp } from "./app.ts";
import { startDnsServer, type TestDnsServer } from "./dns-server.ts";

export interface DnsRecord {
  type: "TXT" | "MX";
  name: string;
  value: string;
  priority: number | null;
  purpose: string;
  required: boolean;
  status: string;
  found: string[];
  reason: string;
}

export interface Domain {
  id: string;
  domain: string;
  status: string;
  dns_records: DnsRecord[];
  error: string | null;
}

export interface DomainDesk extends TestApp {
  ada: Caller;
  dns: TestDnsServer;
}

/** A server that asks a DNS of its own, which knows nothing yet, and an account. */
export async function domainDesk(
  config: ConfigOverrides = {},
  email = "ada@example.com",
): Promise<DomainDesk> {
  await using stack = new AsyncDisposableStack();
  const dns = stack.use(await startDnsServer());
  const t = stack.use(await testApp({ ...config, dns: { servers: [dns.address] } }));
  const ada = await t.as(email);
  const built = stack.move();
  return { ...t, ada, dns, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

export async function addDomain(caller: Caller, domain = "ai.acme.test"): Promise<Domain> {
  const { body, status } = await caller.post("/custom-domains", { domain });
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}

/** Does what the owner of a domain does: copies the records into the DNS, all or those of some purposes. */
export function publish(dns: TestDnsServer, domain: Domain, purposes?: string[]): void {
  const wanted = domain.dns_records.filter(({ purpose }) => purposes?.includes(purpose) ?? true);
  for (const { type, name, value, priority } of wanted)
    if (type === "MX") dns.set(name, "MX", [[priority ?? 0, value]]);
    else dns.set(name, "TXT", [value]);
}

/** A domain that has been verified. */
export async function activeDomain(
  { dns }: { dns: TestDnsServer },
  caller: Caller,
  name?: string,
): Promise<Domain> {
  const domain = await addDomain(caller, name);
  publish(dns, domain);
  const { body } = await caller.post(`/custom-domains/${domain.id}/verify`);
  if (body.status !== "active") throw new Error(JSON.stringify(body));
  return body;
}

/** `{ownership: "verified", …}`. */
export function statuses(domain: Domain): Record<string, string> {
  return Object.fromEntries(domain.dns_records.map(({ purpose, status }) => [purpose, status]));
}

export function recordOf(domain: Domain, purpose: string): DnsRecord {
  const record = domain.dns_records.find((one) => one.purpose === purpose);
  if (!record) throw new Error(`there is no ${purpose} record`);
  return record;
}
