import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { allowsHost, isSpf, withHost } from "../../src/resources/domains/spf.ts";
import type { DnsZone } from "../support/dns-server.ts";
import {
  addDomain,
  type DnsRecord,
  type Domain,
  type DomainDesk,
  domainDesk,
  recordOf,
} from "../support/domain-desk.ts";

const HOST = "mx.mw.test";
const NAME = "ai.acme.test";

/** One domain for all: what a check says of its records depends on nothing but the DNS at that moment. */
let desk: DomainDesk;
let shared: Domain;

beforeAll(async () => {
  desk = await domainDesk();
  shared = await addDomain(desk.ada, NAME);
});

afterAll(() => desk[Symbol.asyncDispose]());

/** What one check says of a record when the DNS holds `zone`, and nothing else. */
async function seen(purpose: string, zone: (domain: Domain) => DnsZone): Promise<DnsRecord> {
  const names = Object.entries(zone(shared));
  for (const [name, records] of names)
    for (const [type, values] of Object.entries(records))
      desk.dns.set(name, type as "TXT", values as string[]);
  // Ten times a minute is all that a domain may be verified.
  desk.clock.advance("1m");
  const { body } = await desk.ada.post(`/custom-domains/${shared.id}/verify`);
  for (const [name] of names) desk.dns.remove(name);
  return recordOf(body, purpose);
}

describe("the ownership record", () => {
  test("is found among others of its name", async () => {
    const record = await seen("ownership", (domain) => ({
      [`_mailwright.${NAME}`]: { TXT: ["other", recordOf(domain, "ownership").value, "third"] },
    }));
    expect(record).toMatchObject({ status: "verified", found: [record.value] });
  });

  test("with another value is a mismatch that shows what is there", async () => {
    const record = await seen("ownership", () => ({
      [`_mailwright.${NAME}`]: { TXT: ["mailwright-verify=wrong"] },
    }));
    expect(record).toMatchObject({ status: "mismatch", found: ["mailwright-verify=wrong"] });
  });

  test("of somebody who publishes a flood is bounded in what is kept", async () => {
    const flood = Array.from({ length: 30 }, (_, index) => `${index} ${"x".repeat(2_000)}`);
    const record = await seen("ownership", () => ({ [`_mailwright.${NAME}`]: { TXT: flood } }));
    expect(record.status).toBe("mismatch");
    expect(record.found).toHaveLength(10);
    for (const text of record.found) expect(text).toHaveLength(1_000);
  });
});

describe("the MX record", () => {
  const CASES: [claim: string, mx: [number, string][], status: string, reason: RegExp][] = [
    ["as it was told", [[10, HOST]], "verified", /^It is there\.$/],
    ["in other letters", [[10, "MX.Mw.Test"]], "verified", /^It is there\.$/],
    ["of another priority", [[0, HOST]], "verified", /^It is there\.$/],
    [
      "before another",
      [
        [5, HOST],
        [10, "backup.test"],
      ],
      "verified",
      /^It is there\.$/,
    ],
    [
      "behind another",
      [
        [1, "other.test"],
        [10, HOST],
      ],
      "verified",
      /tried before .*other\.test/,
    ],
    [
      "beside another",
      [
        [10, "other.test"],
        [10, HOST],
      ],
      "verified",
      /share of the mail.*other\.test/,
    ],
    ["of another server", [[10, "mail.other.test"]], "mismatch", /goes to another server/],
    ["of a server whose name ends alike", [[10, `not-${HOST}`]], "mismatch", /goes to another server/],
    ["that takes no mail", [[0, "."]], "mismatch", /goes to another server/],
  ];
  test.each(CASES)("%s", async (_claim, mx, status, reason) => {
    const record = await seen("inbound_mx", () => ({ [NAME]: { MX: mx } }));
    expect(record.status).toBe(status);
    expect(record.reason).toMatch(reason);
    expect(record.found).toHaveLength(mx.length);
  });
});

describe("the SPF record", () => {
  const CASES: [claim: string, texts: string[], status: string, value: string][] = [
    ["is missing beside other texts", ["google-site-verification=1"], "missing", `v=spf1 a:${HOST} -all`],
    ["is as it was told", [`v=spf1 a:${HOST} -all`], "verified", `v=spf1 a:${HOST} -all`],
    [
      "names the server among others",
      [`V=SPF1 include:_spf.other.test +A:${HOST.toUpperCase()} ~all`],
      "verified",
      `V=SPF1 include:_spf.other.test +A:${HOST.toUpperCase()} ~all`,
    ],
    [
      "names others alone",
      ["v=spf1 include:_spf.other.test ~all"],
      "mismatch",
      `v=spf1 a:${HOST} include:_spf.other.test ~all`,
    ],
    ["names the server behind the end", [`v=spf1 -all a:${HOST}`], "mismatch", `v=spf1 a:${HOST} -all`],
    ["excludes the server", [`v=spf1 -a:${HOST} ?all`], "mismatch", `v=spf1 a:${HOST} ?all`],
    [
      "sends the reader elsewhere",
      ["v=spf1 redirect=_spf.other.test"],
      "mismatch",
      `v=spf1 a:${HOST} redirect=_spf.other.test`,
    ],
    [
      "is there twice",
      [`v=spf1 a:${HOST} -all`, "v=spf1 ip4:192.0.2.1 ~all"],
      "mismatch",
      `v=spf1 a:${HOST} ip4:192.0.2.1 -all`,
    ],
  ];
  test.each(CASES)("%s", async (_claim, texts, status, value) => {
    const record = await seen("spf", () => ({ [NAME]: { TXT: texts } }));
    expect([record.status, record.value]).toEqual([status, value]);
  });

  test("may say mx where the MX is ours", async () => {
    const texts = { TXT: ["v=spf1 mx -all"] };
    const ours = await seen("spf", () => ({ [NAME]: { ...texts, MX: [[10, HOST]] } }));
    const theirs = await seen("spf", () => ({ [NAME]: { ...texts, MX: [[10, "other.test"]] } }));
    expect([ours.status, theirs.status]).toEqual(["verified", "mismatch"]);
  });

  test("that is longer than anybody reads is not repeated as advice", async () => {
    const hosts = Array.from({ length: 200 }, (_, index) => `ip4:192.0.2.${index}`);
    const endless = `v=spf1 ${hosts.join(" ")} -all`;
    const record = await seen("spf", () => ({ [NAME]: { TXT: [endless] } }));
    expect([record.status, record.value]).toEqual(["mismatch", `v=spf1 a:${HOST} -all`]);
    expect(record.found[0]).toHaveLength(1_000);
  });

  test("that is advised always lets the server send, keeps what was there, and has one end", () => {
    for (const record of [
      "v=spf1",
      "v=spf1 -all",
      "v=spf1 mx ip4:192.0.2.0/24 ?all",
      "v=spf1 exp=e.test a",
    ]) {
      const advised = withHost([record], HOST);
      expect(isSpf(advised)).toBe(true);
      expect(allowsHost(advised, HOST, false)).toBe(true);
      for (const term of record.split(" ")) expect(advised.split(" ")).toContain(term);
      expect(withHost([advised], HOST)).toBe(advised);
    }
  });
});

describe("the DKIM record", () => {
  test("of more than 255 octets is put together from its strings", async () => {
    const record = await seen("dkim", (domain) => {
      const { name, value } = recordOf(domain, "dkim");
      expect(value.length).toBeGreaterThan(255);
      return { [name]: { TXT: [[value.slice(0, 17), value.slice(17, 200), value.slice(200)] as never] } };
    });
    expect(record).toMatchObject({ status: "verified", found: [record.value] });
  });

  const CASES: [claim: string, change: (value: string) => string[], status: string, reason: RegExp][] = [
    [
      "with other blanks and order",
      (value) => [value.replace("v=DKIM1; k=rsa; p=", "k=rsa ;p= ")],
      "verified",
      /there/,
    ],
    ["cut off at 255", (value) => [value.slice(0, 255)], "mismatch", /cut off/],
    ["with another key", (value) => [`${value.slice(0, -12)}AAAAAAAAAAAA`], "mismatch", /key of this domain/],
    ["that was revoked", () => ["v=DKIM1; p="], "mismatch", /key of this domain/],
    ["of another algorithm", (value) => [value.replace("rsa", "ed25519")], "mismatch", /key of this domain/],
    ["beside another", (value) => [value, "v=DKIM1; p=AAAA"], "mismatch", /Remove the others/],
  ];
  test.each(CASES)("%s", async (_claim, change, status, reason) => {
    const record = await seen("dkim", (domain) => {
      const { name, value } = recordOf(domain, "dkim");
      return { [name]: { TXT: change(value) } };
    });
    expect(record.status).toBe(status);
    expect(record.reason).toMatch(reason);
  });
});

describe("the DMARC record", () => {
  test("may have any policy", async () => {
    const text = "v=DMARC1; p=reject";
    const record = await seen("dmarc", () => ({ [`_dmarc.${NAME}`]: { TXT: [text] } }));
    expect(record).toMatchObject({ status: "verified", found: [text] });
  });

  test("of the registered domain holds for what is below it", async () => {
    const text = "v=DMARC1; p=quarantine";
    const record = await seen("dmarc", () => ({ "_dmarc.acme.test": { TXT: [text] } }));
    expect(record).toMatchObject({ status: "verified", found: [text] });
  });

  test("is a mismatch where there are two, or something else", async () => {
    const name = `_dmarc.${NAME}`;
    const two = await seen("dmarc", () => ({ [name]: { TXT: ["v=DMARC1; p=none", "v=DMARC1; p=reject"] } }));
    const other = await seen("dmarc", () => ({ [name]: { TXT: ["p=none"] } }));
    expect([two.status, other.status]).toEqual(["mismatch", "mismatch"]);
  });
});

describe("a DNS", () => {
  test("that has no such name says something else than one that has no such record", async () => {
    const nothing = await seen("ownership", () => ({}));
    const another = await seen("ownership", () => ({ [`_mailwright.${NAME}`]: { A: ["192.0.2.1"] } }));
    expect(nothing).toMatchObject({ status: "missing", reason: expect.stringContaining("knows no name") });
    expect(another).toMatchObject({
      status: "missing",
      reason: expect.stringContaining("has no TXT record"),
    });
  });

  const FAULTS: ["servfail" | "refused" | "drop", RegExp][] = [
    ["servfail", /SERVFAIL/],
    ["refused", /refused/],
    ["drop", /not answer in time/],
  ];
  test.each(FAULTS)("that fails (%s) leaves every record pending, with the reason", async (fault, reason) => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada, NAME);
    t.dns.fault("*", fault);
    const { status, body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect([status, body.status]).toEqual([200, "pending"]);
    for (const record of body.dns_records) {
      expect(record).toMatchObject({ status: "pending", found: [] });
      expect(record.reason).toMatch(reason);
    }
  });

  test("that fails for one name alone still counts for the others", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada, NAME);
    t.dns.fault(`_mailwright.${NAME}`, "servfail");
    t.dns.set(NAME, "MX", [[10, HOST]]);
    const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(recordOf(body, "ownership").status).toBe("pending");
    expect(recordOf(body, "inbound_mx").status).toBe("verified");
    expect(body).toMatchObject({ status: "pending", error: expect.stringContaining("SERVFAIL") });
  });

  test("that fails for the policy of the registered domain leaves it open", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada, NAME);
    t.dns.fault("_dmarc.acme.test", "servfail");
    const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(recordOf(body, "dmarc").status).toBe("pending");
  });

  test("that garbles its packets, or answers over TCP only, is understood all the same", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada, NAME);
    for (const { type, name, value } of domain.dns_records)
      if (type === "MX") t.dns.set(name, type, [[10, value]]);
      else t.dns.set(name, type, [value]);
    t.dns.fault("*", "garbage");
    expect((await t.ada.post(`/custom-domains/${domain.id}/verify`)).body.status).toBe("active");
    t.dns.fault("*", "truncate");
    const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(recordOf(body, "dkim").status).toBe("verified");
  });
});
