import { describe, expect, test } from "bun:test";
import { forgetNotices } from "../support/notices.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { simpleParser } from "mailparser";
import { voidLeases } from "../../src/jobs/queue.ts";
import {
  activeDomain,
  addDomain,
  type Domain,
  type DomainDesk,
  domainDesk,
  publish,
} from "../support/domain-desk.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";

describe("a domain that waits for its records", () => {
  test("is looked at every ten minutes and gets active without anybody asking", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    const created = t.app.now();
    await t.drain();
    expect(t.dns.queries).toEqual([]);
    t.clock.advance("10m");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "pending", last_checked_at: created + 600 });
    publish(t.dns, domain);
    t.clock.advance("599s");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "pending", last_checked_at: created + 600 });
    t.clock.advance("1s");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "active", verified_at: created + 1_200, error: null });
  });

  test("has failed after 7 days, and begins anew when it is verified", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    t.clock.advance("6d");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "pending" });
    t.clock.advance("1d");
    await t.drain();
    const failed = await only(t);
    expect(failed).toMatchObject({ status: "failed", error: expect.stringContaining("7 days") });
    t.clock.advance("12h");
    const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(body.status).toBe("pending");
    t.clock.advance("6d");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "pending" });
    publish(t.dns, domain);
    t.clock.advance("10m");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "active" });
  });

  test("is given up with one letter, which says what was found, what is missing and how to go on", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    t.dns.set(domain.domain, "MX", [[5, "mx.elsewhere.test"]]);
    await givenUp(t);
    for (const _ of [1, 2, 3]) await nextDay(t);
    const mails = await letters(t);
    expect(mails.map(({ envelope_to }) => envelope_to)).toEqual(["ada@example.com"]);
    const { subject, text } = await read(mails[0]?.raw);
    expect(subject).toBe(`The DNS records of ${domain.domain} were not seen within 7 days`);
    for (const { required, name, value } of domain.dns_records)
      if (required) for (const shown of [name, value]) expect(text).toContain(shown);
    expect(text).toContain("5 mx.elsewhere.test");
    expect(text).toMatch(/once a day until \d{4}-\d\d-\d\d/);
    expect(text).toContain("/app/domains");
    expect((await only(t)).error).toMatch(/Inbound mail: .*once a day until .*“Look now”/);
    // Who asks anew, and waits in vain again, is told again.
    await t.ada.post(`/custom-domains/${domain.id}/verify`);
    await givenUp(t);
    expect(await letters(t)).toHaveLength(2);
  });

  test("is looked for once a day for a month after it was given up", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    await givenUp(t);
    const asked = t.dns.queries.length;
    t.clock.advance("23h");
    await t.drain();
    expect(t.dns.queries).toHaveLength(asked);
    for (let day = 0; day < 20; day++) await nextDay(t);
    expect(await only(t)).toMatchObject({ status: "failed", last_checked_at: t.app.now() });
    publish(t.dns, domain);
    await nextDay(t);
    expect(await only(t)).toMatchObject({ status: "active", error: null });
  });

  test("is left alone a month after it was given up, and says so", async () => {
    await using t = await domainDesk();
    await addDomain(t.ada);
    await givenUp(t);
    for (let day = 0; day < 30; day++) await nextDay(t);
    expect(await only(t)).toMatchObject({
      status: "failed",
      error: expect.stringMatching(/does not look again by itself\. .*“Look now”/),
    });
    expect(await jobs(t)).toEqual([]);
  });

  test("begins anew although the check of a given-up one is being made", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada);
    await givenUp(t);
    const { resolver } = t.app;
    let verified: Promise<unknown> | undefined;
    t.app.resolver = async (...question) => {
      t.app.resolver = resolver;
      await (verified ??= t.ada.post(`/custom-domains/${id}/verify`));
      return resolver(...question);
    };
    await nextDay(t);
    expect(verified).toBeDefined();
    expect(await only(t)).toMatchObject({ status: "pending" });
    t.clock.advance("6d");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "pending" });
  });

  test("that has failed gets active at once when it is verified with its records there", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    t.clock.advance("8d");
    await t.drain();
    publish(t.dns, domain);
    const { body } = await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(body).toMatchObject({ status: "active", error: null });
  });

  test("does not get more time by being verified again and again", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    for (let day = 0; day < 7; day++) {
      t.clock.advance("1d");
      if (day < 6) await t.ada.post(`/custom-domains/${domain.id}/verify`);
      await t.drain();
    }
    expect(await only(t)).toMatchObject({ status: "failed" });
  });

  test("stays pending when it is proven but active elsewhere, and says why", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada);
    const bob = await t.as("bob@example.com");
    const his = await addDomain(bob);
    publish(t.dns, his, ["ownership"]);
    t.clock.advance("10m");
    await t.drain();
    expect((await bob.get("/custom-domains")).body).toMatchObject([
      { status: "pending", error: expect.stringContaining("another account") },
    ]);
    t.clock.advance("7d");
    await t.drain();
    const [failed] = (await bob.get("/custom-domains")).body;
    expect(failed.status).toBe("failed");
    expect(failed.error).toStartWith(
      "This domain is active in another account, and it can be in one only. The server looks once a day",
    );
    const told = (await letters(t)).filter(({ envelope_to }) => envelope_to === "bob@example.com");
    expect((await read(told.at(-1)?.raw)).text).toContain("active in another account");
  });
});

describe("an active domain", () => {
  test("is looked at once a day", async () => {
    await using t = await domainDesk();
    await activeDomain(t, t.ada);
    t.clock.advance("10m");
    await t.drain();
    const first = (await only(t)).last_checked_at;
    expect(first).toBe(t.app.now());
    t.clock.advance("23h");
    await t.drain();
    expect((await only(t)).last_checked_at).toBe(first);
    t.clock.advance("1h");
    await t.drain();
    expect((await only(t)).last_checked_at).toBe(first + DAY_SECONDS);
  });

  test("whose records are gone for three days stays active, and its owner gets one mail", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    await firstLook(t);
    t.dns.remove(domain.domain);
    for (const mails of [0, 0, 1, 1, 1]) {
      await nextDay(t);
      expect(await letters(t)).toHaveLength(mails);
      expect(await only(t)).toMatchObject({
        status: "active",
        error: expect.stringContaining("Inbound mail:"),
      });
    }
    const [letter] = await letters(t);
    expect(letter?.envelope_to).toBe("ada@example.com");
    const raw = Buffer.from(letter?.raw ?? []).toString();
    expect(raw).toContain(`Subject: The DNS records of ${domain.domain} are not there any more`);
    expect(raw).toContain("Inbound mail:");
    expect(raw).not.toContain("Ownership:");
  });

  test("counts from the beginning once its records were back, and tells of the next loss", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    await firstLook(t);
    t.dns.remove(domain.domain);
    await nextDay(t);
    await nextDay(t);
    publish(t.dns, domain);
    await t.ada.post(`/custom-domains/${domain.id}/verify`);
    t.dns.remove(domain.domain);
    await nextDay(t);
    await nextDay(t);
    expect(await letters(t)).toHaveLength(0);
    await nextDay(t);
    expect(await letters(t)).toHaveLength(1);
    publish(t.dns, domain);
    await nextDay(t);
    expect(await only(t)).toMatchObject({ status: "active", error: null });
    t.dns.remove(domain.domain);
    for (const _ of [1, 2, 3]) await nextDay(t);
    expect(await letters(t)).toHaveLength(2);
  });

  test("does not lose anything by a DNS that fails for days, nor by its owner's own looks", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    await firstLook(t);
    t.dns.fault("*", "servfail");
    for (const _ of [1, 2, 3, 4]) await nextDay(t);
    expect(await misses(t)).toBe(0);
    t.dns.fault("*", undefined);
    t.dns.remove(domain.domain);
    for (const _ of [1, 2, 3, 4]) await t.ada.post(`/custom-domains/${domain.id}/verify`);
    expect(await misses(t)).toBe(0);
    await nextDay(t);
    t.dns.fault("*", "servfail");
    await nextDay(t);
    // Neither a miss nor the end of a row of misses.
    expect(await misses(t)).toBe(1);
    expect(await letters(t)).toHaveLength(0);
  });

  test("is not asked for its records where they are not needed", async () => {
    await using t = await domainDesk({ domains: { verification: "trust" } });
    const domain = await addDomain(t.ada);
    await t.ada.post(`/custom-domains/${domain.id}/verify`);
    await firstLook(t);
    for (const _ of [1, 2, 3, 4]) await nextDay(t);
    expect(await only(t)).toMatchObject({ status: "active", error: null });
    expect(await letters(t)).toHaveLength(0);
  });
});

describe("the job", () => {
  test("is one for each domain, however often it is verified", async () => {
    await using t = await domainDesk();
    const one = await addDomain(t.ada, "one.test");
    await addDomain(t.ada, "two.test");
    for (const _ of [1, 2, 3]) await t.ada.post(`/custom-domains/${one.id}/verify`);
    await Promise.all([1, 2, 3].map(() => t.ada.post(`/custom-domains/${one.id}/verify`)));
    expect(await jobs(t)).toMatchObject([{ kind: "check_domain" }, { kind: "check_domain" }]);
    t.clock.advance("10m");
    await t.drain();
    expect(await jobs(t)).toHaveLength(2);
  });

  test("ends when its domain is gone, or its account", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada, "one.test");
    await addDomain(t.ada, "two.test");
    await t.ada.delete(`/custom-domains/${id}`);
    await t.app.write((tx) => tx.deleteFrom("users").where("id", "=", t.ada.user.id).execute());
    t.clock.advance("10m");
    await t.drain();
    expect(await jobs(t)).toEqual([]);
    expect(t.dns.queries).toEqual([]);
  });

  test("ends when its domain is removed while the DNS is asked", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada);
    t.clock.advance("10m");
    const { resolver } = t.app;
    let removed: Promise<unknown> | undefined;
    t.app.resolver = async (...question) => {
      removed ??= t.ada.delete(`/custom-domains/${id}`);
      await removed;
      return resolver(...question);
    };
    await t.drain();
    expect(await jobs(t)).toEqual([]);
    expect((await t.ada.get("/custom-domains")).body).toEqual([]);
  });

  test("goes on after a crash in the middle of it, in the next process", async () => {
    const dir = await mkdtemp(join(tmpdir(), "mailwright-domains-"));
    try {
      const database = { url: `sqlite:${join(dir, "mw.db")}` };
      let domain: Domain;
      {
        await using t = await domainDesk({ database });
        domain = await addDomain(t.ada);
        await t.app.db
          .updateTable("jobs")
          .set({ status: "running", attempts: 1, lease_until: t.app.now() + 300 })
          .execute();
      }
      await using t = await domainDesk({ database }, "bob@example.com");
      publish(t.dns, domain);
      await t.app.write(voidLeases);
      t.clock.advance("10m");
      await t.drain();
      const row = await t.app.db.selectFrom("custom_domains").select("status").executeTakeFirst();
      expect(row?.status).toBe("active");
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  test("that meets a fault of ours is tried again, however often", async () => {
    await using t = await domainDesk();
    const domain = await addDomain(t.ada);
    publish(t.dns, domain);
    const { resolver } = t.app;
    t.app.resolver = () => Promise.reject(new Error("a bug"));
    for (let count = 0; count < 30; count++) {
      t.clock.advance("1h");
      await t.drain();
    }
    expect(await jobs(t)).toMatchObject([{ status: "pending", failures: 30 }]);
    t.app.resolver = resolver;
    t.clock.advance("1h");
    await t.drain();
    expect(await only(t)).toMatchObject({ status: "active" });
  });
});

// oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever the server said
async function only(t: DomainDesk): Promise<any> {
  const { body } = await t.ada.get("/custom-domains");
  expect(body).toHaveLength(1);
  return body[0];
}

/** The look that was planned when the domain was added. */
async function firstLook(t: DomainDesk): Promise<void> {
  await forgetNotices(t.app);
  t.clock.advance("10m");
  await t.drain();
}

/** The seven days after which a domain is given up. */
async function givenUp(t: DomainDesk): Promise<void> {
  await forgetNotices(t.app);
  t.clock.advance("7d");
  await t.drain();
  expect(await only(t)).toMatchObject({ status: "failed" });
}

async function nextDay(t: DomainDesk): Promise<void> {
  await forgetNotices(t.app);
  t.clock.advance("1d");
  await t.drain();
}

async function jobs(t: DomainDesk) {
  await forgetNotices(t.app);
  return t.app.db.selectFrom("jobs").selectAll().orderBy("id").execute();
}

function letters(t: DomainDesk) {
  return t.app.db
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("kind", "=", "notice")
    .orderBy("id")
    .execute();
}

async function read(raw: Uint8Array | null | undefined): Promise<{ subject: string; text: string }> {
  const { subject = "", text = "" } = await simpleParser(Buffer.from(raw ?? []));
  return { subject, text };
}

async function misses(t: DomainDesk): Promise<number | undefined> {
  return (await t.app.db.selectFrom("custom_domains").select("misses").executeTakeFirst())?.misses;
}
