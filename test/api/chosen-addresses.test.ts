import { describe, expect, test } from "bun:test";
import { activeDomain, domainDesk } from "../support/domain-desk.ts";
import { testApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";

const EVERYWHERE = { inboxes: { chosen_addresses: "everywhere" as const } };

describe("an address that its owner chooses", () => {
  test("is had at a domain of their own, in any case, and takes mail there", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    const { status, body } = await t.ada.post("/inboxes", { local_part: " Billing ", domain_id: domain.id });
    expect([status, body.address]).toEqual([201, "billing@ai.acme.test"]);
    const { body: token } = await t.ada.post("/inboxes", { label: "Billing", domain_id: domain.id });
    expect(token.local_part).toMatch(/^billing-[a-z2-9]{12}$/);
  });

  test("is not had at the service's domain, unless its operator allows that", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const refused = await ada.post("/inboxes", { local_part: "billing" });
    expect([refused.status, refused.body.errors[0]]).toMatchObject([
      422,
      { path: "body.local_part", code: "not_on_this_domain" },
    ]);
    expect(refused.body.errors[0].message).toContain("inboxes.chosen_addresses");
    expect((await t.request("/server")).body.chosen_addresses).toBe("own_domains");
    await using open = await testApp(EVERYWHERE);
    const bob = await open.as("bob@example.com");
    expect((await bob.post("/inboxes", { local_part: "billing" })).body.address).toBe("billing@mw.test");
  });

  test("works: its mail comes in, is answered from there, and its thread goes on", async () => {
    await using room = await mailroom({ config: EVERYWHERE, inbox: { local_part: "billing.desk" } });
    expect(room.inbox.address).toBe("billing.desk@mw.test");
    await room.send({ text: "One" });
    await room.drain();
    const first = await room.newest();
    const raw = (await room.outgoing())[0]?.raw ?? [];
    const [, tag] = /Reply-To:[^\n]*billing\.desk\+(c_\w+)@mw\.test/i.exec(Buffer.from(raw).toString()) ?? [];
    await room.send({
      text: "Two",
      rcpt: `BILLING.DESK+${tag}@mw.test`,
      headers: { "Message-ID": "<two@example.com>" },
    });
    await room.drain();
    expect((await room.newest()).conversation_id).toBe(first.conversation_id);
  });

  test.each([
    "postmaster",
    "Abuse",
    "admin",
    "administrator",
    "hostmaster",
    "webmaster",
    "root",
    "no-reply",
    "mailer-daemon",
    "b",
    "mailwright",
  ])("is not %s@, which is for who runs a server", async (local_part) => {
    await using t = await testApp(EVERYWHERE);
    const ada = await t.as("ada@example.com");
    const { status, body } = await ada.post("/inboxes", { local_part });
    expect([status, body.errors[0].code]).toEqual([422, "reserved_local_part"]);
    expect((await ada.get("/inboxes")).body).toEqual([]);
  });

  test.each([
    "",
    "  ",
    "a b",
    "a+b",
    "a..b",
    ".a",
    "a-",
    "ä",
    "a@b",
    "x".repeat(41),
    "a\r\nb",
    '"a"',
    7,
    null,
  ])("is not %j", async (local_part) => {
    await using t = await testApp(EVERYWHERE);
    const ada = await t.as("ada@example.com");
    expect((await ada.post("/inboxes", { local_part })).status).toBe(422);
  });

  test("is nobody's twice, not even once it was given up, and not for two who ask at once", async () => {
    await using t = await testApp(EVERYWHERE);
    const [ada, eve] = [await t.as("ada@example.com"), await t.as("eve@example.net")];
    const asked = await Promise.all(
      [ada, eve, ada].map((who) => who.post("/inboxes", { local_part: "billing" })),
    );
    expect(asked.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
    const mine = asked.find(({ status }) => status === 201)?.body;
    const owner = (await ada.get("/inboxes")).body.length === 1 ? ada : eve;
    await owner.delete(`/inboxes/${mine.id}`);
    for (const who of [ada, eve]) {
      const { status, body } = await who.post("/inboxes", { local_part: "billing" });
      expect([status, body.code]).toEqual([409, "conflict"]);
    }
  });

  test("gets a random part when it is rotated, and is given up for good", async () => {
    await using t = await testApp(EVERYWHERE);
    const ada = await t.as("ada@example.com");
    const { body } = await ada.post("/inboxes", { local_part: "billing" });
    const rotated = await ada.post(`/inboxes/${body.id}/rotate`);
    expect(rotated.body.local_part).toMatch(/^billing-[a-z2-9]{12}$/);
    expect((await ada.post("/inboxes", { local_part: "billing" })).status).toBe(409);
  });

  test("is not taken along to the service's domain when its own is removed", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    await t.ada.post("/inboxes", { local_part: "support", domain_id: domain.id });
    expect((await t.ada.delete(`/custom-domains/${domain.id}`)).status).toBe(204);
    const [inbox] = (await t.ada.get("/inboxes")).body;
    expect(inbox.address).toMatch(/^support-[a-z2-9]{12}@mw\.test$/);
  });

  test("is not had at a domain of somebody else, or at one that is not proven", async () => {
    await using t = await domainDesk();
    const domain = await activeDomain(t, t.ada);
    const eve = await t.as("eve@example.net");
    expect((await eve.post("/inboxes", { local_part: "billing", domain_id: domain.id })).status).toBe(422);
    const { body: pending } = await t.ada.post("/custom-domains", { domain: "other.acme.test" });
    const refused = await t.ada.post("/inboxes", { local_part: "billing", domain_id: pending.id });
    expect(refused.body.errors[0].code).toBe("domain_not_active");
  });
});
