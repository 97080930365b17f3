import { expect, test } from "bun:test";
import { brokenCap } from "../../src/inbound/sender-caps.ts";
import { purgeLater } from "../../src/operation/retention/purge.ts";
import type { Caller, TestApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";
import { plansOf } from "../support/query-plans.ts";

/** More than any transaction may touch at once. */
const MANY = 500;
const AT_ONCE = 150;

/** Rows like the one of this table, each with an id of its own. */
async function multiply(
  t: TestApp,
  table: "messages" | "conversations" | "webhook_deliveries",
  changes: object = {},
): Promise<void> {
  const row = await t.app.db.selectFrom(table).selectAll().executeTakeFirstOrThrow();
  const copies = Array.from({ length: MANY }, () => ({ ...row, ...changes, id: Bun.randomUUIDv7() }));
  await t.app.db.insertInto(table).values(copies).execute();
}

async function namedBy(t: TestApp, inbox_id: string): Promise<number> {
  const rows = await Promise.all(
    (["messages", "conversations", "mail_keys"] as const).map((table) =>
      t.app.db
        .selectFrom(table)
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .where("inbox_id", "=", inbox_id)
        .executeTakeFirstOrThrow(),
    ),
  );
  return rows.reduce((sum, { count }) => sum + count, 0);
}

test("an inbox with many messages is gone at once, and they are told of it some at a time", async () => {
  await using t = await mailroom({ config: { plans: { team: { inboxes: 1 } } } });
  await t.send({});
  await t.drain();
  const { id, address } = t.inbox;
  await multiply(t, "conversations");
  await multiply(t, "messages", { dedupe_key: null });
  const keys = Array.from({ length: MANY }, (_, at) => ({
    inbox_id: id,
    key_hash: new Uint8Array([at & 255, at >> 8]),
    authority: "owner" as const,
    vouched: 1,
    created: t.app.now(),
  }));
  await t.app.db.insertInto("mail_keys").values(keys).execute();
  const before = await namedBy(t, id);
  expect((await t.owner.delete(`/inboxes/${id}`)).status).toBe(204);
  const left = await namedBy(t, id);
  expect(before - left).toBeLessThanOrEqual(AT_ONCE);
  await expectGone(t, t.owner, { id, address });
  await t.drain();
  expect(await namedBy(t, id)).toBe(0);
  const rows = await t.app.db.selectFrom("inboxes").select("id").where("id", "=", id).execute();
  expect(rows).toEqual([]);
});

async function expectGone(
  t: Awaited<ReturnType<typeof mailroom>>,
  owner: Caller,
  { id, address }: { id: string; address: string },
): Promise<void> {
  const path = `/inboxes/${id}`;
  expect((await owner.get("/inboxes")).body).toEqual([]);
  for (const answer of [
    await owner.get(path),
    await owner.patch(path, { label: "x" }),
    await owner.delete(path),
    await owner.post(`${path}/rotate`),
    await owner.post(`${path}/test`),
    await owner.get(`${path}/vcard`),
    await owner.post("/v1/messages", { instruction: "x", inbox_id: id }),
  ])
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  expect((await owner.post("/v1/messages", { instruction: "x" })).body.code).toBe("inbox_required");
  expect((await owner.get(`/messages?inbox_id=${id}`)).body.items).toEqual([]);
  expect(await t.send({ rcpt: address })).toStartWith("550 5.1.1");
  // Nor does it count: there is room for another.
  const other = await owner.post("/inboxes", {});
  expect(other.status).toBe(201);
  expect((await owner.get("/inboxes")).body).toHaveLength(1);
  expect((await owner.post("/v1/messages", { instruction: "x" })).status).toBe(200);
}

test("what the job of a deletion had no time for is taken up again by the next hour", async () => {
  await using t = await mailroom();
  await t.send({});
  await t.drain();
  await multiply(t, "messages", { dedupe_key: null });
  await t.owner.delete(`/inboxes/${t.inbox.id}`);
  await t.app.db.deleteFrom("jobs").where("kind", "=", "erase_rest").execute();
  await t.app.write((tx) => purgeLater(t.app, tx));
  t.clock.advance("1h");
  await t.drain();
  expect(await namedBy(t, t.inbox.id)).toBe(0);
});

test("an endpoint with many deliveries is gone at once, and they go some at a time", async () => {
  await using t = await mailroom({
    config: { webhooks: { allow: ["198.51.100.7"] }, plans: { team: { webhooks: 1 } } },
  });
  const hook = { url: "https://198.51.100.7/hook", event_types: ["*"] };
  const { id } = (await t.owner.post("/v1/webhooks", hook)).body;
  await t.send({});
  await t.app.db.deleteFrom("jobs").where("kind", "=", "deliver_webhooks").execute();
  const event = await t.app.db.selectFrom("events").selectAll().executeTakeFirstOrThrow();
  const delivery = {
    id: "first",
    endpoint_id: id,
    event_id: event.id,
    status: "delivered" as const,
    attempts: 1,
    url: hook.url,
    created: t.app.now(),
  };
  await t.app.db.insertInto("webhook_deliveries").values(delivery).execute();
  await multiply(t, "webhook_deliveries");
  expect((await t.owner.delete(`/v1/webhooks/${id}`)).status).toBe(204);
  const count = async (): Promise<number> =>
    (await t.app.db.selectFrom("webhook_deliveries").select("id").where("endpoint_id", "=", id).execute())
      .length;
  expect(await count()).toBeGreaterThan(MANY - AT_ONCE);
  expect((await t.owner.get("/v1/webhooks")).body).toEqual([]);
  for (const answer of [
    await t.owner.get(`/v1/webhooks/${id}/deliveries`),
    await t.owner.get(`/v1/webhooks/${id}/secret`),
    await t.owner.patch(`/v1/webhooks/${id}`, { enabled: true }),
    await t.owner.post(`/v1/webhooks/${id}/test`),
    await t.owner.delete(`/v1/webhooks/${id}`),
  ])
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  expect((await t.owner.post("/v1/webhooks", hook)).status).toBe(201);
  await t.drain();
  expect(await count()).toBe(0);
  expect(await t.app.db.selectFrom("webhook_endpoints").select("id").execute()).toHaveLength(1);
});

test("an address that is changed costs the same however many threads the inbox has, and ends all of them", async () => {
  await using t = await mailroom();
  await t.send({});
  await t.drain();
  const plans = await plansOf(t, () => t.owner.post(`/inboxes/${t.inbox.id}/rotate`));
  expect(plans.filter(({ sql }) => /"(conversations|reply_tokens)"/.test(sql))).toEqual([]);
});

test.each(["owner", "unauthenticated"] as const)(
  "how many mails of this hour a conversation has (%s) is found among those of this hour alone",
  async (authority) => {
    await using t = await mailroom();
    await t.send({});
    await t.drain();
    const [message] = await t.activity();
    const mail = {
      inbox_id: t.inbox.id,
      sender: "ann@example.com",
      authority,
      vouched: true,
      body_hash: "",
      conversation_id: message.conversation_id,
      decides: false,
    };
    const plans = await plansOf(t, () => brokenCap(t.app, t.app.db, mail));
    const lines = plans.flatMap((plan) => plan.lines).filter((line) => line.includes("conversation_id"));
    expect(lines).toEqual([
      "SEARCH messages USING INDEX messages_conversation_id_id (conversation_id=? AND id>?)",
    ]);
  },
);
