import { describe, expect, test } from "bun:test";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { createResolver } from "../../src/net/dns.ts";
import { createSafeFetch } from "../../src/net/guarded-fetch.ts";
import { createLog } from "../../src/lib/log.ts";
import { createPolicyFinder, type PolicyOf } from "../../src/mail/sending/mta-sts.ts";
import { type Certificate, createAuthority } from "../support/authority.ts";
import { at, type Direct, direct, MAIL } from "../support/direct.ts";
import type { DnsZone } from "../support/dns-server.ts";
import type { SinkOptions } from "../support/smtp-sink.ts";

const authority = await createAuthority();
const stranger = await createAuthority("Somebody else");
const good = await authority.issue("mx1.there.example");
const DAY = 86_400;

const ZONE: DnsZone = { "there.example": { MX: [[10, "mx1.there.example"]] } };

describe("MTA-STS", () => {
  test("enforced, a server with a good certificate gets the mail", async () => {
    await using t = await withPolicy([{ certificate: good }], "enforce");
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: true });
  });

  const WRONG: [claim: string, sink: () => Promise<SinkOptions>][] = [
    ["offers no TLS", () => Promise.resolve({ starttls: false })],
    ["fails at TLS", () => Promise.resolve({ starttls: "broken" })],
    ["has a certificate of nobody", async () => ({ certificate: await stranger.issue("mx1.there.example") })],
    ["has one for another name", async () => ({ certificate: await authority.issue("mx9.there.example") })],
  ];
  test.each(WRONG)(
    "enforced, a server that %s is given nothing, and the mail waits",
    async (_claim, sink) => {
      await using t = await withPolicy([await sink()], "enforce");
      const outcome = await t.sender.send(MAIL);
      expect(outcome).toMatchObject({ status: "deferred", enhanced: "4.7.5" });
      expect(outcome.response).toStartWith("mx1.there.example was not given the mail");
      expect(at(t.sinks, 0).mails).toEqual([]);
    },
  );

  test("enforced, a server that the policy does not name is not even dialled, and the next one is", async () => {
    const sinks = [{ certificate: good }, { certificate: await authority.issue("mx2.there.example") }];
    const zone: DnsZone = {
      "there.example": {
        MX: [
          [10, "mx1.there.example"],
          [20, "mx2.there.example"],
        ],
      },
    };
    await using t = await withPolicy(sinks, "enforce", { zone, mx: ["mx2.there.example"] });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "mx2.there.example" });
    expect(at(t.sinks, 0).connections).toBe(0);
  });

  test("enforced, a name with a star stands for one label", async () => {
    await using t = await withPolicy([{ certificate: good }], "enforce", { mx: ["*.there.example"] });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    await using wrong = await withPolicy([{ certificate: good }], "enforce", { mx: ["*.example"] });
    expect(await wrong.sender.send(MAIL)).toMatchObject({ status: "deferred" });
  });

  test("in testing, a fault is logged and the mail goes", async () => {
    await using t = await withPolicy([{ starttls: false }], "testing", { mx: ["other.example"] });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: false });
    expect(t.state.faults).toEqual(["the policy does not name it", "it offers no TLS"]);
  });

  test("is fetched once, and again when the DNS names another policy", async () => {
    await using t = await withPolicy([{ certificate: good }], "enforce");
    for (let mail = 0; mail < 3; mail++) await t.sender.send(MAIL);
    expect(t.policy.asked).toBe(1);
    t.policy.id = "2";
    t.policy.mode = "none";
    t.announce();
    await t.sender.send(MAIL);
    expect(t.policy.asked).toBe(2);
    await expect(t.rows()).resolves.toMatchObject([
      { domain: "there.example", mode: "none", policy_id: "2" },
    ]);
  });

  test("goes on while neither the DNS nor the policy can be had, until it ends", async () => {
    await using t = await withPolicy([{ starttls: false }], "enforce", { max_age: DAY });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
    t.dns.fault("_mta-sts.there.example", "servfail");
    t.policy.answer = 500;
    t.forget();
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
    t.state.moment += DAY + 1;
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
  });

  test("survives a restart in the database", async () => {
    await using t = await withPolicy([{ starttls: false }], "enforce");
    await t.sender.send(MAIL);
    t.policy.answer = 500;
    expect(await t.anew()("there.example")).toMatchObject({ mode: "enforce" });
    expect(t.policy.asked).toBe(1);
  });

  test("is fetched anew where the database is damaged", async () => {
    await using t = await withPolicy([{ certificate: good }], "enforce");
    await t.sender.send(MAIL);
    await t.damage();
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(t.policy.asked).toBe(2);
  });

  const NOT_TAKEN: [claim: string, change: (policy: Served) => void][] = [
    ["that is not there", (policy) => (policy.answer = 404)],
    ["behind a redirect", (policy) => (policy.answer = 302)],
    ["of another type", (policy) => (policy.type = "text/html")],
    ["that is endless", (policy) => (policy.padding = 100_000)],
    ["that is none", (policy) => (policy.version = "STSv9")],
  ];
  test.each(NOT_TAKEN)(
    "a policy %s does not hold, and is not asked for all the time",
    async (_claim, change) => {
      await using t = await withPolicy([{ starttls: false }], "enforce");
      change(t.policy);
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
      expect(t.policy.asked).toBe(1);
      t.state.moment += 301;
      await t.sender.send(MAIL);
      expect(t.policy.asked).toBe(2);
    },
  );

  test("a policy whose host shows a certificate of nobody does not hold", async () => {
    await using t = await withPolicy([{ starttls: false }], "enforce", {
      host: await stranger.issue("mta-sts.there.example"),
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(t.policy.asked).toBe(0);
  });

  test("a connection that one domain may use is not safe enough for another by that", async () => {
    const zone: DnsZone = { ...ZONE, "lax.example": { MX: [[10, "mx1.there.example"]] } };
    await using t = await withPolicy(
      [{ certificate: await stranger.issue("mx1.there.example") }],
      "enforce",
      {
        zone,
      },
    );
    expect(await t.sender.send({ ...MAIL, envelope_to: "a@lax.example" })).toMatchObject({ status: "sent" });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred", enhanced: "4.7.5" });
    expect(at(t.sinks, 0).mails).toHaveLength(1);
  });
});

describe("DANE", () => {
  const PINNED: [claim: string, record: string][] = [
    ["its own key", `3 1 1 ${good.spki}`],
    ["its authority", `2 1 1 ${authority.spki}`],
  ];
  test.each(PINNED)(
    "a server whose signed DNS names %s gets the mail, whoever vouches",
    async (_claim, record) => {
      await using t = await pinned([{ certificate: good }], [record]);
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: true });
    },
  );

  const WRONG: [claim: string, record: string, sink: SinkOptions][] = [
    ["another key", `3 1 1 ${stranger.spki}`, { certificate: good }],
    ["another authority", `2 1 1 ${stranger.spki}`, { certificate: good }],
    ["a key, and it offers no TLS", `3 1 1 ${good.spki}`, { starttls: false }],
    ["a key, and it fails at TLS", `3 1 1 ${good.spki}`, { starttls: "broken" }],
    ["nothing of use, and it offers no TLS", `1 1 1 ${good.spki}`, { starttls: false }],
  ];
  test.each(WRONG)("a server whose signed DNS names %s is given nothing", async (_claim, record, sink) => {
    await using t = await pinned([sink], [record]);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred", enhanced: "4.7.5" });
    expect(at(t.sinks, 0).mails).toEqual([]);
  });

  test("the authority is no good for a certificate with another name", async () => {
    const certificate = await authority.issue("mx9.there.example");
    await using t = await pinned([{ certificate }], [`2 1 1 ${authority.spki}`]);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
  });

  test("an authority that is only shown along, and did not sign, is no good", async () => {
    const forged = await stranger.issue("mx1.there.example");
    const certificate = { ...forged, cert: `${forged.cert}\n${authority.cert}` };
    await using t = await pinned([{ certificate }], [`2 1 1 ${authority.spki}`]);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
  });

  test("one of several records is enough, and kinds that say nothing in mail are left out", async () => {
    const records = [`0 0 1 ${stranger.spki}`, `3 1 1 ${stranger.spki}`, `3 1 1 ${good.spki}`];
    await using t = await pinned([{ certificate: good }], records);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    await using lax = await pinned([{}], [`1 1 1 ${stranger.spki}`]);
    expect(await lax.sender.send(MAIL)).toMatchObject({ status: "sent", tls: true });
  });

  test("records that the name server did not validate say nothing", async () => {
    await using t = await pinned([{ starttls: false }], [`3 1 1 ${good.spki}`], []);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: false });
    expect(t.dns.queries.map(({ type }) => type)).not.toContain("TLSA");
  });

  test("a signed DNS that does not say whether there are records makes the mail wait", async () => {
    await using t = await pinned([{}], []);
    t.dns.fault(`_${t.sinks[0]?.port}._tcp.mx1.there.example`, "servfail");
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred", enhanced: "4.7.5" });
    expect(at(t.sinks, 0).connections).toBe(0);
  });

  test("a signed DNS without records asks for nothing", async () => {
    await using t = await pinned([{ starttls: false }], []);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: false });
  });
});

async function pinned(sinks: SinkOptions[], records: string[], signed = ["there.example"]): Promise<Direct> {
  // None of these is about time.
  const t = await direct(sinks, ZONE, {
    timeouts: { connect_ms: 5_000, greeting_ms: 5_000, idle_ms: 5_000 },
  });
  t.dns.signed.push(...signed);
  if (records.length > 0) t.dns.set(`_${t.sinks[0]?.port}._tcp.mx1.there.example`, "TLSA", records);
  return t;
}

interface Served {
  id: string;
  mode: string;
  answer: number;
  type: string;
  version: string;
  padding: number;
  asked: number;
}

interface PolicyOptions {
  zone?: DnsZone;
  mx?: string[];
  max_age?: number;
  host?: Certificate;
}

/** A domain with a policy, served over HTTPS by a host of its own. */
async function withPolicy(sinks: SinkOptions[], mode: string, options: PolicyOptions = {}) {
  const { zone = ZONE, mx = ["mx1.there.example"], max_age = 7 * DAY } = options;
  const policy: Served = {
    id: "1",
    mode,
    answer: 200,
    type: "text/plain",
    version: "STSv1",
    padding: 0,
    asked: 0,
  };
  const text = (): string =>
    [
      `version: ${policy.version}`,
      `mode: ${policy.mode}`,
      ...mx.map((name) => `mx: ${name}`),
      `max_age: ${max_age}`,
      `x: ${"x".repeat(policy.padding)}`,
    ].join("\r\n");
  const { key, cert } = options.host ?? (await policyHost);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key, cert },
    fetch: () => {
      policy.asked += 1;
      const headers = { "content-type": policy.type, location: "https://elsewhere.example/" };
      return new Response(text(), { status: policy.answer, headers });
    },
  });
  const database = openDatabase("sqlite::memory:");
  await migrateToLatest(database.db, true);
  const state = { faults: [] as string[], moment: 1_000_000, dns_time: 0 };
  let anew: () => PolicyOf = () => () => Promise.reject(new Error("not yet"));
  const t = await direct(sinks, { ...zone, "mta-sts.there.example": { A: ["127.0.0.1"] } }, (dns) => {
    const resolver = createResolver({ servers: [dns], now: () => state.dns_time });
    const fetch = createSafeFetch({ resolve: resolver, allow: ["127.0.0.1"], ca: authority.cert });
    anew = () =>
      createPolicyFinder({
        ...database,
        resolver,
        // The port of the real world is not ours to take.
        fetch: (url, init) => fetch(Object.assign(new URL(url), { port: String(server.port) }), init),
        log: createLog({ level: "silent", format: "text" }),
        calmNow: () => state.moment,
      });
    const log = { info: (seen: { fault: string }) => void state.faults.push(seen.fault) } as never;
    return { ca: authority.cert, resolver, policyOf: anew(), log };
  });
  /** What the DNS says of the policy, with nothing remembered of what it said before. */
  const announce = (): void => {
    t.dns.set("_mta-sts.there.example", "TXT", [`v=STSv1; id=${policy.id};`]);
    forget();
  };
  const forget = (): void => void (state.dns_time += 3_600_000);
  announce();
  return {
    ...t,
    policy,
    state,
    announce,
    forget,
    anew: () => anew(),
    rows: () => database.db.selectFrom("transport_policies").selectAll().execute(),
    damage: () => database.db.updateTable("transport_policies").set({ mx: '["mx1' }).execute(),
    [Symbol.asyncDispose]: async () => {
      await t[Symbol.asyncDispose]();
      await server.stop(true);
      await database[Symbol.asyncDispose]();
    },
  };
}

const policyHost = authority.issue("mta-sts.there.example");
