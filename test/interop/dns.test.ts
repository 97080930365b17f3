import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import { createResolver, dnsErrorCode } from "../../src/net/dns.ts";
import { testApp } from "../support/app.ts";
import { addDomain, type Domain, recordOf, statuses } from "../support/domain-desk.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import {
  hasDnsmasq,
  hasNamed,
  type NameServer,
  startDnsmasq,
  startNamed,
  type ZoneRecord,
} from "./name-server.ts";

const VERIFIED = {
  ownership: "verified",
  inbound_mx: "verified",
  spf: "verified",
  dkim: "verified",
  dmarc: "verified",
};

if (!hasNamed) console.log("BIND is not tried: apt-get install bind9");
if (!hasDnsmasq) console.log("dnsmasq is not tried: apt-get install dnsmasq-base");

describe.skipIf(!hasNamed)("records served by BIND", () => suite(startNamed));
describe.skipIf(!hasDnsmasq)("records served by dnsmasq", () => suite(startDnsmasq));

describe.skipIf(!hasNamed)("a zone that BIND cannot load", () => {
  test("answers SERVFAIL, which is pending and no miss", async () => {
    await using server = await startNamed();
    await server.serve([]);
    await using t = await testApp({ dns: { servers: [server.address] } });
    const ada = await t.as("ada@example.com");
    const { id } = await addDomain(ada, "broken.test");
    const { status, body } = await ada.post(`/custom-domains/${id}/verify`);
    expect([status, body.status]).toEqual([200, "pending"]);
    for (const record of body.dns_records) {
      expect(record.status).toBe("pending");
      expect(record.reason).toContain("SERVFAIL");
    }
  });

  test("of somebody else is refused, which is pending too", async () => {
    await using server = await startNamed();
    await server.serve([]);
    await using t = await testApp({ dns: { servers: [server.address] } });
    const ada = await t.as("ada@example.com");
    const { id } = await addDomain(ada, "elsewhere.test");
    const { body } = await ada.post(`/custom-domains/${id}/verify`);
    expect(recordOf(body, "ownership")).toMatchObject({
      status: "pending",
      reason: expect.stringContaining("refused"),
    });
  });
});

function suite(start: () => Promise<NameServer>): void {
  let server: NameServer;

  beforeAll(async () => {
    server = await start();
  });

  afterAll(() => server[Symbol.asyncDispose]());

  test("are all verified, the key of more than 255 octets too", async () => {
    await using t = await testApp({ dns: { servers: [server.address] } });
    const ada = await t.as("ada@example.com");
    const domain = await addDomain(ada, "ai.acme.test");
    await server.serve(zoneOf(domain));
    const { body } = await ada.post(`/custom-domains/${domain.id}/verify`);
    expect(body).toMatchObject({ status: "active", error: null });
    expect(statuses(body)).toEqual(VERIFIED);
    expect(recordOf(body, "dkim").value.length).toBeGreaterThan(255);
    expect(recordOf(body, "inbound_mx").found).toEqual(["10 mx.mw.test"]);
  });

  test("let a receiver believe a reply that is signed with the domain's key", async () => {
    await using room = await mailroom({ config: { dns: { servers: [server.address] } } });
    const domain = await addDomain(room.owner, "ai.acme.test");
    await server.serve(zoneOf(domain));
    await room.owner.post(`/custom-domains/${domain.id}/verify`);
    const { body: inbox } = await room.owner.post("/inboxes", { domain_id: domain.id });
    await room.send({ to: inbox.address, rcpt: inbox.address, ...freshId() });
    await room.drain();
    const [reply] = await room.outgoing();
    const resolver = createResolver({ servers: [server.address] }) as DNSResolver;
    const { results } = await dkimVerify(Buffer.from(reply?.raw ?? []), { resolver });
    expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual([
      ["pass", "ai.acme.test"],
      ["pass", "ai.acme.test"],
    ]);
  });

  test("are seen as they become right, one after the other", async () => {
    await using t = await testApp({ dns: { servers: [server.address] } });
    const ada = await t.as("ada@example.com");
    const domain = await addDomain(ada, "ai.acme.test");
    const verify = async (): Promise<Domain> => (await ada.post(`/custom-domains/${domain.id}/verify`)).body;
    await server.serve([
      { type: "TXT", name: "_mailwright.ai.acme.test", value: "mailwright-verify=old" },
      { type: "MX", name: "ai.acme.test", value: "10 mail.other.test" },
      { type: "TXT", name: "ai.acme.test", value: "v=spf1 include:_spf.other.test ~all" },
    ]);
    const before = await verify();
    expect(before.status).toBe("pending");
    expect(statuses(before)).toEqual({
      ownership: "mismatch",
      inbound_mx: "mismatch",
      spf: "mismatch",
      dkim: "missing",
      dmarc: "missing",
    });
    expect(recordOf(before, "spf").value).toBe("v=spf1 a:mx.mw.test include:_spf.other.test ~all");
    // What was advised is what the next look finds right.
    await server.serve([...zoneOf(before), { type: "MX", name: "ai.acme.test", value: "5 mail.other.test" }]);
    const after = await verify();
    expect(after.status).toBe("active");
    expect(statuses(after)).toEqual(VERIFIED);
    expect(recordOf(after, "inbound_mx").reason).toContain("mail.other.test");
  });

  test("that are not there are told apart: no such name, no such record", async () => {
    await server.serve([]);
    const resolve = createResolver({ servers: [server.address] });
    const code = (name: string) => resolve(name, "TXT").then(() => "found", dnsErrorCode);
    expect(await code("empty.acme.test")).toBe("ENODATA");
    expect(await code("nowhere.acme.test")).toBe("ENOTFOUND");
  });

  test("are pending while the server is gone, and the domain keeps what it has", async () => {
    await using t = await testApp({ dns: { servers: [server.address] } });
    const ada = await t.as("ada@example.com");
    const domain = await addDomain(ada, "ai.acme.test");
    await server.serve(zoneOf(domain));
    await ada.post(`/custom-domains/${domain.id}/verify`);
    await server.end();
    const { body } = await ada.post(`/custom-domains/${domain.id}/verify`);
    expect(body.status).toBe("active");
    expect(new Set(Object.values(statuses(body)))).toEqual(new Set(["pending"]));
  });
}

/** The records as their owner copies them into a zone. */
function zoneOf(domain: Domain): ZoneRecord[] {
  return domain.dns_records.map(({ type, name, value, priority }) => ({
    type,
    name,
    value: type === "MX" ? `${priority} ${value}` : value,
  }));
}
