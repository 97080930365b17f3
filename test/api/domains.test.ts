import { describe, expect, test } from "bun:test";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { activeDomain, addDomain, domainDesk, publish, recordOf, statuses } from "../support/domain-desk.ts";
import { keyRows } from "../../src/mail/writing/dkim-keys.ts";
import { testApp } from "../support/app.ts";

const ALL = ["ownership", "inbound_mx", "spf", "dkim", "dkim", "dmarc"];
const HOST = "mx.mw.test";

describe("a server without a public name", () => {
  test.each(["vm", "mail.local", "localhost"])(
    "called %s says what to set, and that nothing is to be published",
    async (hostname) => {
      await using t = await testApp({ smtp: { hostname } });
      const ada = await t.as("ada@example.com");
      const { body } = await ada.post("/custom-domains", { domain: "ai.acme.test" });
      expect(body.publishable).toBe(false);
      expect(body.error).toContain(`"${hostname}"`);
      expect(body.error).toContain("smtp.hostname");
    },
  );
});

describe("adding a domain", () => {
  test("answers 201 with the records to publish, none of them looked for yet", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const { status, body } = await ada.post("/custom-domains", { domain: "ai.acme.test" });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      domain: "ai.acme.test",
      status: "pending",
      verified_at: null,
      last_checked_at: null,
      publishable: true,
      error: null,
      created: t.app.now(),
    });
    expect(body.dns_records.map((record: { purpose: string }) => record.purpose)).toEqual(ALL);
    expect(body.dns_records).toMatchObject([
      {
        type: "TXT",
        name: "_mailwright.ai.acme.test",
        value: expect.stringMatching(/^mailwright-verify=[a-z0-9]{32}$/),
        priority: null,
        required: true,
      },
      { type: "MX", name: "ai.acme.test", value: HOST, priority: 10, required: true },
      { type: "TXT", name: "ai.acme.test", value: `v=spf1 a:${HOST} -all`, required: false },
      {
        type: "TXT",
        name: "s1._domainkey.ai.acme.test",
        value: expect.stringMatching(/^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]+=*$/),
        required: false,
      },
      {
        type: "TXT",
        name: "e1._domainkey.ai.acme.test",
        value: expect.stringMatching(/^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/),
        required: false,
      },
      {
        type: "TXT",
        name: "_dmarc.ai.acme.test",
        value: "v=DMARC1; p=none; rua=mailto:ada@example.com",
        required: false,
      },
    ]);
    for (const record of body.dns_records)
      expect(record).toMatchObject({ status: "pending", found: [], reason: expect.stringContaining("yet") });
  });

  test("makes an RSA key of 2048 bits and an Ed25519 key for each domain and keeps their private halves sealed", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const domains = [await addDomain(ada, "one.test"), await addDomain(ada, "two.test")];
    const seen = new Set<string>();
    for (const { id, dns_records } of domains) {
      const rows = await keyRows(t.app.db, id);
      expect(rows.map(({ selector, algorithm }) => [selector, algorithm])).toEqual([
        ["s1", "rsa"],
        ["e1", "ed25519"],
      ]);
      for (const { id: key_id, algorithm, public_part, sealed } of rows) {
        const key = createPrivateKey(t.app.secrets.open(sealed ?? new Uint8Array(), key_id));
        if (algorithm === "rsa") expect(key.asymmetricKeyDetails?.modulusLength).toBe(2_048);
        const der = createPublicKey(key).export({ type: "spki", format: "der" });
        expect((algorithm === "rsa" ? der : der.subarray(-32)).toString("base64")).toBe(public_part);
        expect(dns_records.some(({ value }) => value.endsWith(`k=${algorithm}; p=${public_part}`))).toBe(
          true,
        );
        seen.add(public_part);
      }
    }
    expect(seen.size).toBe(4);
    const shown = JSON.stringify((await ada.get("/custom-domains")).body);
    expect(shown).not.toContain("PRIVATE");
    expect(shown).not.toContain("sealed");
  });

  const SPELLINGS: [claim: string, given: string, domain: string][] = [
    ["upper case", "AI.Acme.TEST", "ai.acme.test"],
    ["an umlaut", "Bücher.example", "xn--bcher-kva.example"],
    ["an A-label", "xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["the dot of the root", "acme.test.", "acme.test"],
    ["blanks around it", "  acme.test\n", "acme.test"],
    ["an ideographic full stop", "例え。テスト", "xn--r8jz45g.xn--zckzah"],
    ["a tenant of a shared suffix", "acme.github.io", "acme.github.io"],
    ["a parent of the domain of the server", "test.example", "test.example"],
  ];
  test.each(SPELLINGS)("takes %s", async (_claim, given, domain) => {
    await using t = await testApp({ smtp: { domain: "in.test.example" } });
    const { status, body } = await (await t.as("ada@example.com")).post("/custom-domains", { domain: given });
    expect([status, body.domain]).toEqual([201, domain]);
  });

  test("takes `name` for `domain`, and `domain` before it; ignores what it does not know", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    expect((await ada.post("/custom-domains", { name: "one.test" })).body.domain).toBe("one.test");
    const both = { name: "two.test", domain: "three.test", status: "active", id: "x" };
    expect((await ada.post("/custom-domains", both)).body).toMatchObject({
      domain: "three.test",
      status: "pending",
    });
  });

  const long = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(50)}`;
  const REFUSED: [claim: string, domain: unknown, code: string][] = [
    ["nothing", "", "invalid_domain"],
    ["one label", "localhost", "invalid_domain"],
    ["a wildcard", "*.acme.test", "invalid_domain"],
    ["an IPv4 address", "192.0.2.1", "invalid_domain"],
    ["an IPv4 address in hexadecimal", "0x7f.1", "invalid_domain"],
    ["an IPv6 address", "2001:db8::1", "invalid_domain"],
    ["an address literal", "[192.0.2.1]", "invalid_domain"],
    ["a URL", "https://acme.test", "invalid_domain"],
    ["a mail address", "ada@acme.test", "invalid_domain"],
    ["an empty label", "acme..test", "invalid_domain"],
    ["a dot in front", ".acme.test", "invalid_domain"],
    ["a hyphen at the end of a label", "acme-.test", "invalid_domain"],
    ["an underscore", "_dmarc.acme.test", "invalid_domain"],
    ["a space", "ac me.test", "invalid_domain"],
    ["a line break", "acme.test\r\nevil.test", "invalid_domain"],
    ["an escaped letter", "acm%65.test", "invalid_domain"],
    ["a label that is too long", `${"a".repeat(64)}.test`, "invalid_domain"],
    ["a broken A-label", "xn--a.test", "invalid_domain"],
    ["a name that leaves no room for its records", long, "invalid_domain"],
    ["a public suffix", "co.uk", "public_suffix"],
    ["a suffix that a company shares out", "github.io", "public_suffix"],
    ["the domain of the server", "mw.test", "own_domain"],
    ["the domain of the server in other letters", "MW.Test.", "own_domain"],
    ["a domain below it", "deep.in.mw.test", "own_domain"],
    ["the host of the server", HOST, "own_domain"],
    ["a number", 7, "invalid"],
    ["null", null, "invalid"],
    ["a list", ["acme.test"], "invalid"],
    ["a thousand and one letters", "a".repeat(1_001), "too_long"],
  ];
  test("refuses what is no domain of anybody's own, each with its reason", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    for (const [claim, domain, code] of REFUSED) {
      const { status, body } = await ada.post("/custom-domains", { domain });
      expect([claim, status, body.errors]).toEqual([
        claim,
        422,
        [{ path: "body.domain", code, message: expect.any(String) }],
      ]);
    }
    expect((await ada.get("/custom-domains")).body).toEqual([]);
  });

  test("refuses a body without a domain, and one that is no JSON object", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    for (const body of [{}, { unknown: 1 }])
      expect((await ada.post("/custom-domains", body)).body.errors).toMatchObject([
        { path: "body.domain", code: "missing" },
      ]);
    for (const body of ["{", "[]", '"acme.test"', undefined])
      expect((await ada.post("/custom-domains", body)).body.errors).toMatchObject([
        { path: "body", code: "json_invalid" },
      ]);
  });

  test("refuses the same domain twice, however it is written, and also at the same time", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await addDomain(ada, "bücher.example");
    const again = await ada.post("/custom-domains", { domain: "XN--BCHER-KVA.example." });
    expect([again.status, again.body.code]).toEqual([409, "conflict"]);
    const twins = await Promise.all(
      [1, 2, 3].map(() => ada.post("/custom-domains", { domain: "twin.test" })),
    );
    expect(twins.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect((await ada.get("/custom-domains")).body).toHaveLength(2);
  });

  test("lets a second account wait for the same domain, with a token of its own", async () => {
    await using t = await testApp();
    const one = await addDomain(await t.as("ada@example.com"));
    const two = await addDomain(await t.as("bob@example.com"));
    expect(recordOf(one, "ownership").value).not.toBe(recordOf(two, "ownership").value);
  });

  test("stops at the cap of the plan, also when several come at once, and a removed one makes room", async () => {
    await using t = await testApp({ plans: { team: { custom_domains: 2 } } });
    const ada = await t.as("ada@example.com");
    const answers = await Promise.all(
      ["a", "b", "c", "d"].map((name) => ada.post("/custom-domains", { domain: `${name}.test` })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 403, 403]);
    const refused = answers.find(({ status }) => status === 403);
    expect(refused?.body).toMatchObject({ code: "plan_limit_reached", limit: 2, current: 2 });
    const [first] = (await ada.get("/custom-domains")).body;
    expect((await ada.delete(`/custom-domains/${first.id}`)).status).toBe(204);
    expect((await ada.post("/custom-domains", { domain: "e.test" })).status).toBe(201);
  });

  test("is limited to 60 an hour, because each makes a key", async () => {
    await using t = await testApp({ plans: { team: { custom_domains: 0 } } });
    const ada = await t.as("ada@example.com");
    for (let count = 0; count < 60; count++)
      expect((await ada.post("/custom-domains", { domain: "acme.test" })).status).toBe(403);
    const { status, headers } = await ada.post("/custom-domains", { domain: "acme.test" });
    expect([status, headers.get("retry-after")]).toEqual([429, "60"]);
  });
});

describe("the list and the removal", () => {
  test("the list is an array, oldest first, of one's own alone", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    expect((await ada.get("/custom-domains")).body).toEqual([]);
    const one = await addDomain(ada, "one.test");
    const two = await addDomain(ada, "two.test");
    await addDomain(await t.as("bob@example.com"), "three.test");
    expect((await ada.get("/custom-domains")).body).toEqual([one, two]);
  });

  test("a removed domain is gone, and can be added again with new records", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const domain = await addDomain(ada);
    const { status, body } = await ada.delete(`/custom-domains/${domain.id}`);
    expect([status, body]).toEqual([204, ""]);
    expect((await ada.get("/custom-domains")).body).toEqual([]);
    expect((await ada.delete(`/custom-domains/${domain.id}`)).status).toBe(404);
    expect((await ada.post(`/custom-domains/${domain.id}/verify`)).status).toBe(404);
    const again = await addDomain(ada);
    expect(again.id).not.toBe(domain.id);
    expect(recordOf(again, "ownership").value).not.toBe(recordOf(domain, "ownership").value);
    expect(recordOf(again, "dkim").value).not.toBe(recordOf(domain, "dkim").value);
  });

  test("an id that is no uuid is refused with 422", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    for (const answer of [
      await ada.post("/custom-domains/7/verify"),
      await ada.delete("/custom-domains/not-an-id"),
    ]) {
      expect(answer.status).toBe(422);
      expect(answer.body.errors).toMatchObject([{ path: "path.domain_id" }]);
    }
  });
});

describe("verifying", () => {
  test("an unpublished domain answers 200 and pending, with a reason on every record", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada);
    const { status, body } = await t.ada.post(`/custom-domains/${id}/verify`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: "pending", verified_at: null, last_checked_at: t.app.now() });
    expect(new Set(Object.values(statuses(body)))).toEqual(new Set(["missing"]));
    for (const { reason } of body.dns_records) expect(reason.length).toBeGreaterThan(20);
    expect(body.error).toContain("Ownership:");
    expect(body.error).toContain("Inbound mail:");
    expect((await t.ada.get("/custom-domains")).body).toEqual([body]);
  });

  test("a domain with all its records is active, and each of them verified", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    publish(t.dns, domain);
    const { status, body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: "active", verified_at: t.app.now(), error: null });
    expect(statuses(body)).toEqual(Object.fromEntries(ALL.map((purpose) => [purpose, "verified"])));
    for (const record of body.dns_records) {
      const seen = record.type === "MX" ? `10 ${HOST}` : record.value;
      expect(record.found).toEqual([seen]);
    }
  });

  test("the ownership record and the MX are enough, and neither is alone", async () => {
    await using t = await domainDesk();
    const outcomes = [];
    for (const purposes of [
      ["ownership"],
      ["inbound_mx"],
      ["ownership", "inbound_mx"],
      ["spf", "dkim", "dmarc"],
    ]) {
      const domain = await addDomain(t.ada, `${purposes.join("-").replaceAll("_", "-")}.test`);
      publish(t.dns, domain, purposes);
      const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
      outcomes.push([purposes.join(), body.status, body.error === null]);
    }
    expect(outcomes).toEqual([
      ["ownership", "pending", false],
      ["inbound_mx", "pending", false],
      ["ownership,inbound_mx", "active", true],
      ["spf,dkim,dmarc", "pending", false],
    ]);
  });

  test("asking again keeps the time of the first success, and a lost record does not end it", async () => {
    await using t = await domainDesk();
    const { id, domain } = await activeDomain(t, t.ada);
    const verified_at = t.app.now();
    t.clock.advance("1h");
    t.dns.remove(domain);
    const { body } = await t.ada.post(`/custom-domains/${id}/verify`);
    expect(body).toMatchObject({ status: "active", verified_at, last_checked_at: verified_at + 3_600 });
    expect(body.error).toContain("Inbound mail:");
    expect(statuses(body)).toMatchObject({ ownership: "verified", inbound_mx: "missing", spf: "missing" });
  });

  test("sees a record at once that was not there a moment ago, and one that was changed", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    t.dns.set(domain.domain, "MX", [[10, "other.test"]]);
    const first = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(statuses(first.body)).toMatchObject({ ownership: "missing", inbound_mx: "mismatch" });
    publish(t.dns, domain);
    const second = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(second.body.status).toBe("active");
  });

  test("is limited to 10 a minute for a domain, and nobody else can use them up", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada);
    const bob = await t.as("bob@example.com");
    for (let count = 0; count < 10; count++)
      expect((await bob.post(`/custom-domains/${id}/verify`)).status).toBe(404);
    for (let count = 0; count < 10; count++)
      expect((await t.ada.post(`/custom-domains/${id}/verify`)).status).toBe(200);
    const { status, body, headers } = await t.ada.post(`/custom-domains/${id}/verify`);
    expect([status, body.code, headers.get("retry-after")]).toEqual([429, "rate_limited", "6"]);
    t.clock.advance("6s");
    expect((await t.ada.post(`/custom-domains/${id}/verify`)).status).toBe(200);
  });

  test("of one that is removed meanwhile answers 404 and leaves nothing behind", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    publish(t.dns, domain);
    const [verified, removed] = await Promise.all([
      t.ada.post(`/custom-domains/${domain.id}/verify`),
      t.ada.delete(`/custom-domains/${domain.id}`),
    ]);
    expect([verified.status, removed.status]).toEqual([404, 204]);
    expect(await t.app.db.selectFrom("custom_domains").select("id").execute()).toEqual([]);
  });
});

describe("a domain of two accounts", () => {
  test("two that verify it at the same time: one is active, the other is told 409", async () => {
    await using t = await domainDesk();
    const bob = await t.as("bob@example.com");
    const mine = await addDomain(t.ada);
    const his = await addDomain(bob);
    publish(t.dns, mine);
    const tokens = [mine, his].map((domain) => recordOf(domain, "ownership").value);
    t.dns.set(`_mailwright.${mine.domain}`, "TXT", tokens);
    const answers = await Promise.all([
      t.ada.post(`/custom-domains/${mine.id}/verify`),
      bob.post(`/custom-domains/${his.id}/verify`),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const lost = answers.find(({ status }) => status === 409);
    expect(lost?.body).toMatchObject({
      code: "conflict",
      detail: expect.stringContaining("another account"),
    });
    const rows = await t.app.db.selectFrom("custom_domains").select("status").execute();
    expect(rows.map(({ status }) => status).sort()).toEqual(["active", "pending"]);
  });

  test("who has not proven it is not told that it is somebody's", async () => {
    await using t = await domainDesk();
    const { domain } = await activeDomain(t, t.ada);
    const bob = await t.as("bob@example.com");
    const { id } = await addDomain(bob, domain);
    const { status, body } = await bob.post(`/custom-domains/${id}/verify`);
    expect([status, body.status, statuses(body)["ownership"]]).toEqual([200, "pending", "mismatch"]);
    expect(JSON.stringify(body)).not.toContain("another account");
  });

  test("is free again once the first one has removed it", async () => {
    await using t = await domainDesk();
    const mine = await activeDomain(t, t.ada);
    const bob = await t.as("bob@example.com");
    const his = await addDomain(bob);
    t.dns.set(`_mailwright.${his.domain}`, "TXT", [recordOf(his, "ownership").value]);
    expect((await bob.post(`/custom-domains/${his.id}/verify`)).status).toBe(409);
    expect((await bob.get("/custom-domains")).body).toMatchObject([
      { status: "pending", error: expect.stringContaining("another account") },
    ]);
    await t.ada.delete(`/custom-domains/${mine.id}`);
    const { status, body } = await bob.post(`/custom-domains/${his.id}/verify`);
    expect([status, body.status, body.error]).toEqual([200, "active", null]);
  });
});

describe("with domains.verification = trust", () => {
  test("a domain is active at once, and its records still say what is there", async () => {
    await using t = await domainDesk({ domains: { verification: "trust" } });
    const domain = await addDomain(t.ada);
    publish(t.dns, domain, ["spf"]);
    const { status, body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect([status, body.status, body.verified_at, body.error]).toEqual([200, "active", t.app.now(), null]);
    expect(statuses(body)).toEqual({
      ownership: "missing",
      inbound_mx: "missing",
      spf: "verified",
      dkim: "missing",
      dmarc: "missing",
    });
  });

  test("a domain is still active for one account only", async () => {
    await using t = await domainDesk({ domains: { verification: "trust" } });
    const bob = await t.as("bob@example.com");
    const ids = [(await addDomain(t.ada)).id, (await addDomain(bob)).id];
    expect((await t.ada.post(`/custom-domains/${ids[0]}/verify`)).status).toBe(200);
    expect((await bob.post(`/custom-domains/${ids[1]}/verify`)).status).toBe(409);
  });
});
