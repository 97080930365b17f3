import { describe, expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { defaultConfig } from "../../src/config/config.ts";
import type { Plan } from "../../src/db/schema.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { storeConversations, storeMessages } from "./archive.ts";
import { deskOf } from "./desk.ts";
import { hookDesk } from "./hook-desk.ts";

const DAY = 86_400;
const DEMO = { llm: { kind: "demo" as const } };
/** No DNS is asked before a domain is active. */
const TRUSTED = { dns: { servers: ["127.0.0.1:9"] }, domains: { verification: "trust" as const } };
/** The caps of decision C. */
const CAPS = {
  free: {
    inboxes: 3,
    connections: 10,
    mcp_per_inbox: 3,
    custom_domains: 1,
    webhooks: 3,
    allowlist_entries: 50,
    contexts: 3,
    api_keys: 1,
    history_days: 30,
  },
  pro: {
    inboxes: 10,
    connections: 25,
    mcp_per_inbox: 10,
    custom_domains: 3,
    webhooks: 10,
    allowlist_entries: 200,
    contexts: 50,
    api_keys: 10,
    history_days: 365,
  },
  team: {
    inboxes: 50,
    connections: 100,
    mcp_per_inbox: 20,
    custom_domains: 20,
    webhooks: 50,
    allowlist_entries: 500,
    contexts: 200,
    api_keys: 50,
    history_days: 730,
  },
};

test("the plans allow what they are sold with", () => {
  const sold = { stripe_secret_key: "sk_test_1", stripe_webhook_secret: "whsec_1" };
  const { free, pro, team } = defaultConfig({ billing: sold }).plans;
  expect({ free, pro, team }).toMatchObject(CAPS);
  expect([free.credits, pro.credits, team.credits]).toEqual([100, 2_000, 10_000]);
});

/** What uses up a cap: `free` of it are allowed, and `make` asks for the one of that number, or for so many. */
const MADE: [name: string, limit: number, make: (ada: Caller, number: number) => Promise<Answer>][] = [
  ["inboxes", 3, (ada) => ada.post("/inboxes", {})],
  ["connections", 10, (ada) => ada.post("/connections", { kind: "demo" })],
  ["custom domains", 1, (ada, number) => ada.post("/custom-domains", { domain: `ai${number}.acme.test` })],
  [
    "webhook endpoints",
    3,
    (ada) => ada.post("/v1/webhooks", { url: "https://hooks.example.com/", event_types: ["*"] }),
  ],
  ["contexts", 3, (ada) => ada.post("/contexts", { title: "A", body: "B", kind: "knowledge" })],
];

test.each(MADE)("of %s the Free plan allows %d, and says so about one more", async (_name, limit, make) => {
  await using t = await testApp({ plans: { default: "free" }, dns: { servers: ["127.0.0.1:9"] } });
  const ada = await t.as("ada@example.com");
  for (let number = 1; number <= limit; number += 1) expect((await make(ada, number)).status).toBe(201);
  const { status, body } = await make(ada, limit + 1);
  expect([status, body]).toMatchObject([403, { code: "plan_limit_reached", limit, current: limit }]);
});

describe("one more than an account may have", () => {
  const one = { plans: { free: { inboxes: 1 }, default: "free" } } as const;
  const refused = async (config: Parameters<typeof testApp>[0]) => {
    await using t = await testApp(config);
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const { detail, fix } = (await ada.post("/inboxes", {})).body;
    return { detail, fix };
  };

  test("is refused in the name of the server, with its setting, where no plans are sold", async () => {
    expect(await refused(one)).toEqual({
      detail: "This server allows you 1 inbox; this would make 2.",
      fix: "Remove some of your inboxes, or ask the administrator of this server to raise plans.free.inboxes.",
    });
  });

  test("is refused in the name of the plan where plans are sold", async () => {
    const billing = { stripe_secret_key: "sk_test_1", stripe_webhook_secret: "whsec_1" };
    expect(await refused({ ...one, billing })).toEqual({
      detail: "Your Free plan allows 1 inbox; this would make 2.",
      fix: "Remove some of your inboxes, or ask the operator for a larger plan.",
    });
  });
});

test("of one inbox the Free plan allows three tool servers and fifty allowed senders", async () => {
  await using t = await testApp({ ...DEMO, plans: { default: "free" } });
  const { ada, inbox_id } = await deskOf(t);
  const mcp_connection_ids: string[] = [];
  for (let number = 1; number <= 4; number += 1) {
    const made = await ada.post("/connections", {
      kind: "mcp",
      base_url: `https://tools${number}.example.com/`,
    });
    mcp_connection_ids.push(made.body.id);
  }
  const allowlist_senders = Array.from({ length: 51 }, (_, number) => `a${number}@example.com`);
  for (const [name, all] of Object.entries({ mcp_connection_ids, allowlist_senders })) {
    const limit = all.length - 1;
    for (const answer of [
      await ada.patch(`/inboxes/${inbox_id}`, { [name]: all }),
      await ada.post("/inboxes", { [name]: all }),
    ])
      expect([answer.status, answer.body]).toMatchObject([403, { code: "plan_limit_reached", limit }]);
    const fits = await ada.patch(`/inboxes/${inbox_id}`, { [name]: all.slice(1) });
    expect([fits.status, fits.body[name].length]).toEqual([200, limit]);
  }
});

describe("after a downgrade", () => {
  test("the newest inboxes rest: their mail is limited, and they can only be looked at, moved and deleted", async () => {
    await using room = await mailroom({ config: { plans: { free: { inboxes: 1 } } } });
    const { owner } = room;
    const { body: second } = await owner.post("/inboxes", { label: "Second" });
    await downgrade(room, owner);
    const shown = (await owner.get("/inboxes")).body;
    expect(shown.map(({ enabled }: { enabled: boolean }) => enabled)).toEqual([true, false]);
    const to_second = { to: second.address, rcpt: second.address };
    for (const more of [{}, to_second, to_second])
      expect(await room.send({ text: "Hello", ...more, ...freshId() })).toStartWith("250 ");
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { inbox_id: second.id, status: "limited", reason: "plan_limit", credits_charged: 0 },
      { inbox_id: second.id, status: "limited", reason: "plan_limit", credits_charged: 0 },
      { inbox_id: room.inbox.id, status: "done", credits_charged: 1 },
    ]);
    const notices = (await room.outgoing()).filter(({ kind }) => kind === "notice");
    expect(notices.map(({ envelope_to }) => envelope_to)).toEqual(["ada@example.com"]);
    for (const refused of [
      await owner.patch(`/inboxes/${second.id}`, { label: "Changed" }),
      await owner.post(`/inboxes/${second.id}/test`),
      await owner.post("/v1/messages", { instruction: "x", inbox_id: second.id }),
    ])
      expect([refused.status, refused.body]).toMatchObject([
        403,
        { code: "plan_limit_reached", limit: 1, current: 2 },
      ]);
    expect((await owner.patch(`/inboxes/${second.id}`, {})).body).toMatchObject({ enabled: false });
    expect((await owner.post(`/inboxes/${second.id}/rotate`)).body).toMatchObject({ enabled: false });
    // Once there is room, the next one works again.
    await owner.delete(`/inboxes/${room.inbox.id}`);
    expect((await owner.get("/inboxes")).body).toMatchObject([{ id: second.id, enabled: true }]);
    expect((await owner.post("/v1/messages", { instruction: "x" })).status).toBe(200);
  });

  test("a failed message of a resting inbox cannot be tried again", async () => {
    await using t = await testApp({ plans: { free: { inboxes: 1 } } });
    const { ada } = await deskOf(t);
    const { body: second } = await ada.post("/inboxes", {});
    const [failed] = await storeMessages(t, ada.user, [
      { state: "failed", inbox_id: second.id, source: "api" },
    ]);
    await downgrade(t, ada);
    const { status, body } = await ada.post(`/messages/${failed?.id}/retry`);
    expect([status, body.code]).toEqual([403, "plan_limit_reached"]);
  });

  test("the newest contexts stay in use, and can only be switched off and deleted", async () => {
    await using t = await testApp({ plans: { free: { contexts: 1 } } });
    const ada = await t.as("ada@example.com");
    const context = { title: "A", body: "B", kind: "instruction" };
    const { body: first } = await ada.post("/contexts", context);
    const { body: second } = await ada.post("/contexts", context);
    await downgrade(t, ada);
    expect((await ada.get("/contexts")).body).toEqual([first, second]);
    expect((await ada.patch(`/contexts/${first.id}`, { title: "C" })).status).toBe(200);
    for (const change of [{ title: "C" }, { enabled: true }, { enabled: false, body: "D" }]) {
      const { status, body } = await ada.patch(`/contexts/${second.id}`, change);
      expect([status, body]).toMatchObject([403, { code: "plan_limit_reached", limit: 1, current: 2 }]);
    }
    expect((await ada.patch(`/contexts/${second.id}`, {})).body).toEqual(second);
    expect((await ada.patch(`/contexts/${second.id}`, { enabled: false })).body.enabled).toBe(false);
    expect((await ada.delete(`/contexts/${second.id}`)).status).toBe(204);
  });

  test("the newest connections stay in use, and only their secrets can be replaced", async () => {
    await using t = await testApp({ plans: { free: { connections: 1 } } });
    const ada = await t.as("ada@example.com");
    await ada.post("/connections", { kind: "demo" });
    const { body: second } = await ada.post("/connections", {
      kind: "openai",
      credential: "sk-first-credential-0001",
    });
    const { body: inbox } = await ada.post("/inboxes", { default_connection_id: second.id });
    await downgrade(t, ada);
    for (const change of [{ label: "Mine" }, { credential: "sk-second-credential-0002", model: "large" }]) {
      const { status, body } = await ada.patch(`/connections/${second.id}`, change);
      expect([status, body]).toMatchObject([403, { code: "plan_limit_reached", limit: 1, current: 2 }]);
    }
    const replaced = await ada.patch(`/connections/${second.id}`, {
      credential: "sk-second-credential-0002",
    });
    expect([replaced.status, replaced.body.credential_hint]).toEqual([200, "…0002"]);
    expect((await ada.get("/inboxes")).body).toMatchObject([{ id: inbox.id, routed: true }]);
    expect((await ada.delete(`/connections/${second.id}`)).status).toBe(204);
  });

  test("the newest webhook endpoints are off until there is room again; what waited for them can be replayed", async () => {
    await using t = await hookDesk({ plans: { free: { webhooks: 1 } } });
    const [, off, newest] = [await t.hook(), await t.hook({ enabled: false }), await t.hook()];
    await t.app.db
      .insertInto("events")
      .values({
        id: "evt_1",
        user_id: t.ada.user.id,
        type: "message.completed",
        message_id: null,
        livemode: 1,
        body: "{}",
        created: t.app.now(),
      })
      .execute();
    const delivery = { id: Bun.randomUUIDv7(), endpoint_id: newest.id, event_id: "evt_1", url: newest.url };
    await t.app.db
      .insertInto("webhook_deliveries")
      .values({
        ...delivery,
        status: "pending",
        attempts: 1,
        created: t.app.now(),
        next_attempt_at: t.app.now() + 60,
      })
      .execute();
    await downgrade(t, t.ada);
    const shown = async () =>
      (await t.ada.get("/v1/webhooks")).body.map((row: Record<string, unknown>) => [
        row["enabled"],
        row["disabled_reason"],
      ]);
    expect(await shown()).toEqual([
      [true, null],
      [false, null],
      [false, expect.stringContaining("Your plan allows fewer webhook endpoints")],
    ]);
    const { body: deliveries } = await t.ada.get(`/v1/webhooks/${newest.id}/deliveries`);
    expect(deliveries).toMatchObject([{ status: "failed", error: "endpoint_disabled" }]);
    expect((await t.ada.patch(`/v1/webhooks/${newest.id}`, { enabled: true })).body.code).toBe(
      "plan_limit_reached",
    );
    await t.app.db.updateTable("webhook_endpoints").set({ consecutive_failures: 4 }).execute();
    await setPlan(t.app, { email: "ada@example.com", plan: "team" });
    const { body: again } = await t.ada.get("/v1/webhooks");
    expect(again.map((row: Record<string, unknown>) => row["consecutive_failures"])).toEqual([4, 4, 0]);
    // What its owner switched off stays so.
    expect(await shown()).toEqual([
      [true, null],
      [false, null],
      [true, null],
    ]);
    expect(off.enabled).toBe(false);
  });

  test("the times of a schedule are left out where its inbox rests, and its owner is told, as of endpoints that are off", async () => {
    await using room = await mailroom({ config: { plans: { free: { inboxes: 1, webhooks: 1 } } } });
    const { owner } = room;
    const { body: second } = await owner.post("/inboxes", { label: "Reports" });
    const hook = { url: "https://hooks.example.com/", event_types: ["*"] };
    for (const _count of [1, 2]) expect((await owner.post("/v1/webhooks", hook)).status).toBe(201);
    const letters = async () =>
      (await room.outgoing()).map(({ raw }) =>
        Buffer.from(raw ?? "")
          .toString()
          .replaceAll(/=?\r\n/g, " "),
      );
    await downgrade(room, owner);
    await room.drain();
    const [first = "", ...none] = await letters();
    expect(none).toEqual([]);
    expect(first).toContain("Subject: An inbox is more than your Mailwright account may have");
    expect(first).toMatch(/so\s+the\s+newest\s+one\s+is\s+switched\s+off/);
    for (const { id } of (await owner.get("/v1/webhooks")).body) await owner.delete(`/v1/webhooks/${id}`);
    await setPlan(room.app, { email: "ada@example.com", plan: "team" });
    const daily = { instruction: "Report", every: "daily 9:00", inbox_id: second.id };
    expect((await owner.post("/v1/schedules", daily)).status).toBe(201);
    await downgrade(room, owner);
    room.clock.advance("25h");
    await room.drain();
    const told = (await letters()).slice(1).filter((letter) => letter.includes("An inbox is more than"));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/The\s+times\s+of\s+their\s+schedules\s+are\s+left\s+out/);
    expect((await owner.get("/v1/schedules")).body).toMatchObject([{ status: "active" }]);
  });

  test("lists that are too long for the plan stay, and other settings of their inbox can change", async () => {
    await using t = await testApp({ plans: { free: { allowlist_entries: 1 } } });
    const { ada, inbox_id } = await deskOf(t);
    const allowlist_senders = ["a@example.com", "b@example.com"];
    await ada.patch(`/inboxes/${inbox_id}`, { allowlist_senders });
    await downgrade(t, ada);
    const { status, body } = await ada.patch(`/inboxes/${inbox_id}`, { label: "Changed" });
    expect([status, body]).toMatchObject([200, { label: "Changed", allowlist_senders }]);
    expect((await ada.patch(`/inboxes/${inbox_id}`, { allowlist_senders })).status).toBe(403);
  });

  test("keys go on, since programs use them: there are no more of them, and on Free a new one takes the place of all", async () => {
    await using t = await testApp({ plans: { pro: { api_keys: 2 } } });
    const ada = await t.as("ada@example.com");
    const keys = [ada.key];
    for (let number = 2; number <= 4; number += 1) keys.push((await ada.post("/auth/api-key")).body.key);
    const working = async () => {
      const statuses: number[] = [];
      for (const key of keys)
        statuses.push((await t.request("/auth/me", { headers: { "x-api-key": key } })).status);
      return statuses;
    };
    await setPlan(t.app, { email: "ada@example.com", plan: "pro" });
    const refused = await ada.post("/auth/api-key");
    expect([refused.status, refused.body]).toMatchObject([
      403,
      { code: "plan_limit_reached", limit: 2, current: 4 },
    ]);
    await downgrade(t, ada);
    expect(await working()).toEqual([200, 200, 200, 200]);
    const { body: renewed } = await ada.post("/auth/api-key");
    expect(renewed.replaced).toHaveLength(4);
    expect(await working()).toEqual([401, 401, 401, 401]);
    expect((await t.request("/auth/me", { headers: { "x-api-key": renewed.key } })).status).toBe(200);
  });

  test("the newest domains keep their inboxes, and can only be looked at and deleted", async () => {
    await using t = await testApp({ ...TRUSTED, plans: { free: { custom_domains: 1 } } });
    const ada = await t.as("ada@example.com");
    const ids: string[] = [];
    for (const domain of ["one.acme.test", "two.acme.test", "three.acme.test"])
      ids.push((await ada.post("/custom-domains", { domain })).body.id);
    const [first, second, third] = ids;
    const verify = async (id?: string) => (await ada.post(`/custom-domains/${id}/verify`)).body;
    for (const id of [first, second])
      expect(await verify(id)).toMatchObject({ status: "active", error: null });
    const { body: inbox } = await ada.post("/inboxes", { domain_id: second });
    await downgrade(t, ada);
    expect((await ada.get("/inboxes")).body).toMatchObject([{ id: inbox.id, domain: "two.acme.test" }]);
    const refused = await ada.post("/inboxes", { domain_id: second });
    expect([refused.status, refused.body]).toMatchObject([
      403,
      { code: "plan_limit_reached", limit: 1, current: 3 },
    ]);
    expect((await ada.post("/inboxes", { domain_id: first })).status).toBe(201);
    expect(await verify(second)).toMatchObject({ status: "active", error: null });
    // Neither asked for nor by itself does one more become active.
    t.clock.advance("10m");
    await t.drain();
    const full = {
      status: "pending",
      error: expect.stringContaining("Your account may have no more active domains"),
    };
    expect((await ada.get("/custom-domains")).body[2]).toMatchObject(full);
    expect(await verify(third)).toMatchObject(full);
    // Once there is room, the next one can be had.
    for (const id of [first, second]) expect((await ada.delete(`/custom-domains/${id}`)).status).toBe(204);
    t.clock.advance("10m");
    await t.drain();
    expect((await ada.get("/custom-domains")).body).toMatchObject([{ id: third, status: "active" }]);
  });

  test("a domain that there is no room for in a week is given up, and says why", async () => {
    await using t = await testApp({ ...TRUSTED, plans: { free: { custom_domains: 0 } } });
    const ada = await t.as("ada@example.com");
    await ada.post("/custom-domains", { domain: "one.acme.test" });
    await downgrade(t, ada);
    t.clock.advance("7d");
    await t.drain();
    expect((await ada.get("/custom-domains")).body).toMatchObject([
      { status: "failed", error: expect.stringContaining("Your account may have no more active domains") },
    ]);
  });
});

describe("the history that a plan shows", () => {
  test.each(["free", "pro", "team"] as Plan[])("ends with its days on %s", async (plan) => {
    await using t = await testApp({ plans: { default: plan } });
    const ada = await t.as("ada@example.com");
    const days = CAPS[plan].history_days;
    const now = t.app.now();
    const [, seen] = await storeMessages(t, ada.user, [
      { created: now - days * DAY - 1 },
      { created: now - days * DAY },
    ]);
    const { body } = await ada.get("/messages?since=0");
    expect(body.items.map((item: { message_id: string }) => item.message_id)).toEqual([seen?.id]);
  });

  test("hides older messages, their files, their mail and their conversations, and a larger plan shows them again", async () => {
    await using t = await testApp({ plans: { free: { history_days: 30 }, team: { history_days: 0 } } });
    const ada = await t.as("ada@example.com");
    const [old, recent] = [t.app.now() - 31 * DAY, t.app.now() - DAY];
    const [gone, both] = await storeConversations(t, ada.user, [{ last_at: old }, { last_at: recent }]);
    const [first, second] = await storeMessages(t, ada.user, [
      { created: old, conversation_id: both?.id ?? null, state: "failed" },
      { created: recent, conversation_id: both?.id ?? null },
    ]);
    const message_id = first?.id ?? "";
    const attachment_id = Bun.randomUUIDv7();
    await t.app.db
      .insertInto("attachments")
      .values({
        id: attachment_id,
        message_id,
        direction: "out",
        filename: "a.txt",
        content_type: "text/plain",
        size: 1,
        created: old,
        purged_at: null,
        segment: null,
        segment_offset: null,
        bytes: Buffer.from("a"),
      })
      .execute();
    const paths = [
      `/v1/messages/${message_id}`,
      `/messages/${message_id}/attachments/${attachment_id}`,
      `/conversations/${gone?.id}`,
    ];
    const seen = async () => {
      const statuses: number[] = [];
      for (const path of paths) statuses.push((await ada.get(path)).status);
      const turns = (await ada.get(`/conversations/${both?.id}`)).body.turns;
      return {
        statuses,
        turns: turns.map((turn: { message_id: string }) => turn.message_id),
        messages: (await ada.get("/messages")).body.items.length,
        filtered: (await ada.get("/messages?status=failed")).body.items.length,
        conversations: (await ada.get("/conversations")).body.items.length,
      };
    };
    const all = { statuses: [200, 200, 200], turns: [message_id, second?.id], messages: 2, filtered: 1 };
    expect(await seen()).toEqual({ ...all, conversations: 2 });
    await downgrade(t, ada);
    expect(await seen()).toEqual({
      statuses: [404, 404, 404],
      turns: [second?.id],
      messages: 1,
      filtered: 0,
      conversations: 1,
    });
    expect((await ada.post(`/messages/${message_id}/retry`)).status).toBe(404);
    await setPlan(t.app, { email: "ada@example.com", plan: "team" });
    expect(await seen()).toEqual({ ...all, conversations: 2 });
  });
});

async function downgrade(t: TestApp, { user }: Caller): Promise<void> {
  await setPlan(t.app, { email: user.email, plan: "free" });
}
