import { expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import type { ServiceDnsShape } from "../../src/resources/domains/shapes.ts";
import { domainDesk } from "../support/domain-desk.ts";

const HOST = { smtp: { hostname: "mx.acme.test", domain: "acme.test" } };
type ServiceDns = Static<typeof ServiceDnsShape>;

test("an administrator sees what to publish for the server's own domain, and it turns right as it is published", async () => {
  await using desk = await domainDesk(HOST);
  const look = async (): Promise<ServiceDns> => (await desk.ada.get("/admin/dns")).body;
  const statusOf = ({ records }: ServiceDns, purpose: string) =>
    records.find((record) => record.purpose === purpose)?.status;

  const before = await look();
  expect(before).toMatchObject({ domain: "acme.test", hostname: "mx.acme.test", public: true, ready: false });
  expect(before.records.find(({ purpose }) => purpose === "inbound_mx")).toMatchObject({
    type: "MX",
    name: "acme.test",
    value: "mx.acme.test",
    required: true,
    status: "missing",
    found: [],
  });

  desk.dns.set("acme.test", "MX", [[10, "other.example"]]);
  expect(statusOf(await look(), "inbound_mx")).toBe("mismatch");

  for (const { type, name, value, priority } of before.records)
    if (type === "MX") desk.dns.set(name, "MX", [[priority ?? 0, value ?? ""]]);
    else if (type === "TXT") desk.dns.set(name, "TXT", [value ?? ""]);
    else desk.dns.set(name, type as "A" | "AAAA" | "PTR", [value ?? "192.0.2.7"]);
  const after = await look();
  expect([after.ready, statusOf(after, "inbound_mx"), statusOf(after, "dkim")]).toEqual([
    true,
    "verified",
    "verified",
  ]);

  desk.dns.fault("*", "servfail");
  const silent = await look();
  expect([silent.ready, new Set(silent.records.map(({ status }) => status))]).toEqual([
    false,
    new Set(["pending"]),
  ]);
});

test.each(["localhost", "desk", "adas-desk.local", "box.home.arpa"])(
  "of a server called %s nothing is to be published, and the DNS is not asked",
  async (name) => {
    await using desk = await domainDesk({ smtp: { hostname: name, domain: name } });
    const { status, body } = await desk.ada.get("/admin/dns");
    expect([status, body]).toEqual([
      200,
      { domain: name, hostname: name, public: false, ready: false, records: [] },
    ]);
    expect(desk.dns.queries).toEqual([]);
  },
);

test("looking for the records has a rate of its own", async () => {
  await using desk = await domainDesk({ smtp: { hostname: "desk", domain: "desk" } });
  const statuses: number[] = [];
  for (let n = 0; n < 21; n += 1) statuses.push((await desk.ada.get("/admin/dns")).status);
  expect(statuses).toEqual([...Array<number>(20).fill(200), 429]);
});
