import { describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import {
  checkServiceKeysLater,
  damagedKeysWarning,
  findKeyHome,
  rotateKeys,
} from "../../src/resources/domains/key-home.ts";
import { createResolver } from "../../src/net/dns.ts";
import { dkimRecord, dnsRecords, signMail } from "../../src/mail/writing/dkim.ts";
import { keyRows, serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { signingKeys } from "../../src/resources/domains/domains.ts";
import {
  activeDomain,
  type Domain,
  type DomainDesk,
  domainDesk,
  type DnsRecord,
} from "../support/domain-desk.ts";
import { testKeys } from "../support/keys.ts";
import { rawMail } from "../support/mails.ts";

const NAME = "ai.acme.test";

describe("a change of keys", () => {
  test("of a custom domain makes new records, signs with the old keys until they are seen, then with the new", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    const home = await findKeyHome(t.app, NAME);
    expect((await rotateKeys(t.app, home)).step).toBe("made");
    const shown = dkimOf(await only(t));
    expect(shown.map(({ name, status }) => [name.split(".")[0], status])).toEqual([
      ["s1", "verified"],
      ["e1", "verified"],
      ["s2", "pending"],
      ["e2", "pending"],
    ]);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    t.clock.advance("10m");
    await t.drain();
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    put(t, shown);
    t.clock.advance("10m");
    await t.drain();
    expect(await signers(t, NAME)).toEqual(["s2", "e2"]);
    expect(await passes(t, NAME)).toEqual(["s2 pass", "e2 pass"]);
  });

  test("takes each algorithm by itself", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    await rotateKeys(t.app, await findKeyHome(t.app, NAME));
    put(
      t,
      dkimOf(await only(t)).filter(({ name }) => name.startsWith("s2.")),
    );
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s2", "e1"]);
  });

  test("advises to keep the old records for seven days, then to remove them, and forgets them once they are gone", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    const home = await findKeyHome(t.app, NAME);
    await rotateKeys(t.app, home);
    const records = dkimOf(await only(t));
    put(t, records);
    await verify(t);
    const old = dkimOf(await only(t)).filter(({ name }) => /^[se]1\./.test(name));
    expect(
      old.map(({ reason, required }) => [/Keep this record until 2026-01-22/.test(reason), required]),
    ).toEqual([
      [true, false],
      [true, false],
    ]);
    t.clock.advance("6d");
    await verify(t);
    expect((await keyRows(t.app.db, home.row?.id ?? "")).map(({ state }) => state)).toEqual([
      "retired",
      "signing",
      "retired",
      "signing",
    ]);
    t.clock.advance("1d");
    await t.drain();
    const dropped = dkimOf(await only(t)).filter(({ name }) => /^[se]1\./.test(name));
    expect(dropped.map(({ reason }) => reason)).toEqual([
      "Nothing needs this record any more: remove it.",
      "Nothing needs this record any more: remove it.",
    ]);
    const rows = await keyRows(t.app.db, home.row?.id ?? "");
    expect(rows.filter(({ state }) => state === "dropped").map(({ sealed }) => sealed)).toEqual([null, null]);
    for (const { name } of old) t.dns.remove(name);
    t.clock.advance("1d");
    await t.drain();
    expect(dkimOf(await only(t)).map(({ name }) => name.split(".")[0])).toEqual(["s2", "e2"]);
    // The next keys have names that were never used.
    await rotateKeys(t.app, home);
    expect(dkimOf(await only(t)).map(({ name }) => name.split(".")[0])).toEqual(["s2", "e2", "s3", "e3"]);
  });

  test("goes back to the old key while the new record is gone, and keeps it past its time for that", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    await rotateKeys(t.app, await findKeyHome(t.app, NAME));
    const records = dkimOf(await only(t));
    put(t, records);
    await verify(t);
    for (const { name } of records) if (/^[se]2\./.test(name)) t.dns.remove(name);
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    t.clock.advance("8d");
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    put(t, records);
    t.clock.advance("10m");
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s2", "e2"]);
  });

  test("is not moved by a DNS that does not answer, nor by a record with another key", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    await rotateKeys(t.app, await findKeyHome(t.app, NAME));
    t.dns.fault("*", "servfail");
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
    t.dns.fault("*", undefined);
    for (const { name, value } of dkimOf(await only(t)))
      if (/^[se]2\./.test(name)) t.dns.set(name, "TXT", [value.replace(/p=..../, "p=AAAA")]);
    await verify(t);
    expect(await signers(t, NAME)).toEqual(["s1", "e1"]);
  });

  test("asked for again looks at the DNS, makes no further keys, and says how far it is", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    const home = await findKeyHome(t.app, NAME);
    const steps = await Promise.all([1, 2, 3].map(() => rotateKeys(t.app, home)));
    expect(steps.map(({ step }) => step).toSorted()).toEqual(["made", "waiting", "waiting"]);
    expect(dkimOf(await only(t))).toHaveLength(4);
    put(t, dkimOf(await only(t)));
    expect((await rotateKeys(t.app, home)).step).toBe("switched");
    expect(await signers(t, NAME)).toEqual(["s2", "e2"]);
  });

  test("of a domain that has failed is refused, and so is one of a name that is not ours", async () => {
    await using t = await domainDesk();
    await t.ada.post("/custom-domains", { domain: NAME });
    t.clock.advance("8d");
    await t.drain();
    const home = await findKeyHome(t.app, NAME);
    expect(await failureOf(rotateKeys(t.app, home))).toContain("were not seen within 7 days");
    expect(await failureOf(findKeyHome(t.app, "other.test"))).toContain(
      "other.test is no domain of this server",
    );
  });

  test("of a domain that waits in two accounts is refused until one has proven it", async () => {
    await using t = await domainDesk();
    await t.ada.post("/custom-domains", { domain: NAME });
    await (await t.as("bob@example.com")).post("/custom-domains", { domain: NAME });
    expect(await failureOf(findKeyHome(t.app, NAME))).toContain("several accounts");
  });

  test("ends with its domain: no key is left", async () => {
    await using t = await domainDesk();
    const { id } = await activeDomain(t, t.ada, NAME);
    await rotateKeys(t.app, await findKeyHome(t.app, NAME));
    await t.ada.delete(`/custom-domains/${id}`);
    expect(await keyRows(t.app.db, id)).toEqual([]);
    expect(await t.app.db.selectFrom("dkim_keys").select("id").execute()).toHaveLength(2);
  });
});

describe("the keys of the service's own domain", () => {
  test("change by themselves once the recurring look sees the new records", async () => {
    await using t = await domainDesk({ outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:9" } });
    const first = dnsRecords(await serviceKeys(t.app), "mw.test");
    for (const { name, value } of first) t.dns.set(name, "TXT", [value]);
    await t.app.write((tx) => checkServiceKeysLater(t.app, tx));
    await t.app.write((tx) => checkServiceKeysLater(t.app, tx));
    expect(await jobs(t)).toHaveLength(1);
    t.clock.advance("10m");
    await t.drain();
    expect((await keyRows(t.app.db, null)).map(({ record }) => record)).toEqual(["seen", "seen"]);
    const [daily] = await jobs(t);
    expect(daily?.run_at).toBe(t.app.now() + 86_400);
    const home = await findKeyHome(t.app);
    const { keys } = await rotateKeys(t.app, home);
    // The look is not a day away any more.
    expect((await jobs(t))[0]?.run_at).toBe(t.app.now() + 600);
    for (const key of keys) {
      const { name, value } = dkimRecord(key, "mw.test");
      t.dns.set(name, "TXT", [value]);
    }
    expect(await signers(t, "mw.test")).toEqual(["s1", "e1"]);
    t.clock.advance("10m");
    await t.drain();
    expect(await signers(t, "mw.test")).toEqual(["s2", "e2"]);
    expect(await passes(t, "mw.test")).toEqual(["s2 pass", "e2 pass"]);
    t.clock.advance("7d");
    await t.drain();
    expect((await keyRows(t.app.db, null)).map(({ selector, state }) => `${selector} ${state}`)).toEqual([
      "s1 dropped",
      "s2 signing",
      "e1 dropped",
      "e2 signing",
    ]);
  });

  test("sign with RSA alone where Ed25519 was never published", async () => {
    await using t = await domainDesk();
    const [rsa] = dnsRecords(await serviceKeys(t.app), "mw.test");
    t.dns.set(rsa?.name ?? "", "TXT", [rsa?.value ?? ""]);
    await t.app.write((tx) => checkServiceKeysLater(t.app, tx));
    t.clock.advance("10m");
    await t.drain();
    expect(await signers(t, "mw.test")).toEqual(["s1"]);
    // Nothing is going to change: the next look is a day away.
    expect((await jobs(t))[0]?.run_at).toBe(t.app.now() + 86_400);
  });

  test("look again soon when a record that was there has gone", async () => {
    await using t = await domainDesk();
    const records = dnsRecords(await serviceKeys(t.app), "mw.test");
    for (const { name, value } of records) t.dns.set(name, "TXT", [value]);
    await t.app.write((tx) => checkServiceKeysLater(t.app, tx));
    t.clock.advance("10m");
    await t.drain();
    t.dns.remove(records[0]?.name ?? "");
    await t.app.write((tx) => checkServiceKeysLater(t.app, tx));
    t.clock.advance("10m");
    await t.drain();
    expect(await signers(t, "mw.test")).toEqual(["e1"]);
    expect((await jobs(t))[0]?.run_at).toBe(t.app.now() + 600);
  });
});

describe("a damaged key", () => {
  test("signs nothing; that is told until a new one signs in its place", async () => {
    await using t = await domainDesk();
    for (const { name, value } of dnsRecords(await testKeys(), "mw.test")) t.dns.set(name, "TXT", [value]);
    await damage(t, "s1");
    expect(await signers(t, "mw.test")).toEqual(["e1"]);
    expect(await damagedKeysWarning(t.app)).toMatchObject({
      found: expect.stringContaining("s1 of mw.test"),
      mend: expect.stringContaining("`mailwright dkim rotate`"),
    });
    const home = await findKeyHome(t.app);
    await rotateKeys(t.app, home);
    expect(await damagedKeysWarning(t.app)).toBeDefined();
    for (const key of await keyRows(t.app.db, null))
      t.dns.set(dkimRecord(key, "mw.test").name, "TXT", [dkimRecord(key, "mw.test").value]);
    expect((await rotateKeys(t.app, home)).step).toBe("switched");
    expect(await signers(t, "mw.test")).toEqual(["s2", "e2"]);
    expect(await damagedKeysWarning(t.app)).toBeUndefined();
  });

  test("is told with the domain of an account, and the one that it replaced signs", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada, NAME);
    const home = await findKeyHome(t.app, NAME);
    await rotateKeys(t.app, home);
    put(t, dkimOf(await only(t)));
    expect((await rotateKeys(t.app, home)).step).toBe("switched");
    await damage(t, "s2");
    expect(await signers(t, NAME)).toEqual(["s1", "e2"]);
    expect((await damagedKeysWarning(t.app))?.mend).toContain(`mailwright dkim rotate ${NAME}`);
  });

  test("that waits for its record keeps nobody from new ones", async () => {
    await using t = await domainDesk();
    const home = await findKeyHome(t.app);
    await rotateKeys(t.app, home);
    for (const selector of ["s2", "e2"]) await damage(t, selector);
    expect((await rotateKeys(t.app, home)).step).toBe("made");
    const keys = await keyRows(t.app.db, null);
    expect(keys.filter(({ state }) => state === "waiting").map(({ selector }) => selector)).toEqual([
      "s3",
      "e3",
    ]);
    expect((await rotateKeys(t.app, home)).step).toBe("waiting");
  });

  async function damage(t: DomainDesk, selector: string): Promise<void> {
    const sealed = Buffer.from("x");
    await t.app.db.updateTable("dkim_keys").set({ sealed }).where("selector", "=", selector).execute();
  }
});

async function signers(t: DomainDesk, domain: string): Promise<string[]> {
  return ((await signingKeys(t.app, domain)) ?? []).map(({ selector }) => selector);
}

/** What a receiver makes of a mail that is signed now. */
async function passes(t: DomainDesk, domain: string): Promise<string[]> {
  const keys = (await signingKeys(t.app, domain)) ?? [];
  const raw = await signMail(rawMail({ from: `box@${domain}`, text: "Hello.\r\n" }), domain, keys);
  const resolver = createResolver({ servers: [t.dns.address] }) as DNSResolver;
  const { results } = await dkimVerify(raw, { resolver });
  return results.map(({ selector, status }) => `${selector} ${status.result}`);
}

async function only(t: DomainDesk): Promise<Domain> {
  return (await t.ada.get("/custom-domains")).body[0];
}

function dkimOf({ dns_records }: Domain): DnsRecord[] {
  return dns_records.filter(({ purpose }) => purpose === "dkim");
}

function put(t: DomainDesk, records: DnsRecord[]): void {
  for (const { name, value } of records) t.dns.set(name, "TXT", [value]);
}

async function verify(t: DomainDesk): Promise<void> {
  t.clock.advance("1m");
  await t.ada.post(`/custom-domains/${(await only(t)).id}/verify`);
}

function jobs(t: DomainDesk) {
  return t.app.db.selectFrom("jobs").selectAll().where("kind", "=", "check_service_keys").execute();
}

function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "",
    (error: Error) => error.message,
  );
}
