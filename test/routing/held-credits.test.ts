import { describe, expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { deleteAccount } from "../../src/resources/accounts/deletion.ts";
import { freshId, mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";
import { letters } from "../support/priced-room.ts";
import { until } from "../support/until.ts";

const NEWSLETTERS = {
  rules: [{ name: "Newsletters", when: [{ field: "sender", is: ["@shop.example"] }], do: { skip: true } }],
};

/** A room whose owner has so many credits, and a model that answers once it may. */
async function heldRoom(credits: number, inbox: object = {}, concurrent_routes = 1) {
  const gate = Promise.withResolvers<string>();
  const room = await mailroom({
    config: { plans: { default: "free", free: { credits, concurrent_routes }, pro: { credits: 50 } } },
    model: { reply: () => gate.promise },
    inbox: { ...inbox },
  });
  return Object.assign(room, {
    open: () => gate.resolve("Done."),
    /** Has a first mail worked on, up to the model; what is returned ends with all work. */
    begin: async (mail: RoomMail) => {
      await room.send(mail);
      const drained = room.drain();
      await room.model.received(1);
      return async () => {
        await drained;
        await room.drain();
      };
    },
  });
}

let number = 0;
const from = (who: string, text = `Order ${++number}`) => ({ ...freshId(), from: who, subject: text, text });
const statuses = async (room: Mailroom) => (await room.activity()).map(({ status }) => status).toReversed();
const order = (room: Mailroom) =>
  room.model.requests.map(({ body }) => /Mail \d/.exec(JSON.stringify(body?.messages))?.[0]);
const limits = async (room: Mailroom) =>
  (await letters(room)).filter(({ subject }) => /credits|not worked on/.test(subject));
const waiting = (room: Mailroom) =>
  room.app.db
    .selectFrom("jobs")
    .select(["id", "status", "run_at", "lane", "payload"])
    .where("dedupe_key", "like", "credits:%")
    .execute();
const credits = async (room: Mailroom) => (await room.owner.get("/auth/me")).body.credits;

describe("a mail that comes while the credits that are left are held for others", () => {
  test("is worked on once some are given back, and nobody is told", async () => {
    await using room = await heldRoom(4, NEWSLETTERS);
    const drained = await room.begin(from("c1@customer.example"));
    for (const n of [1, 2, 3]) await room.send(from(`news${n}@shop.example`));
    for (const n of [2, 3, 4]) expect(await room.send(from(`c${n}@customer.example`))).toStartWith("250");
    expect((await statuses(room)).slice(-3)).toEqual(["received", "received", "received"]);
    expect(await waiting(room)).toHaveLength(3);
    const [newest] = await room.activity();
    const { body: story } = await room.owner.get(`/messages/${newest.message_id}`);
    expect(story.steps.map(({ output }: { output: string }) => output)).toEqual([
      "All credits that are left this month are held for other messages. It waits until one is given back, for an hour at most.",
    ]);
    room.open();
    await drained();
    expect(await statuses(room)).toEqual([
      "done",
      "rejected",
      "rejected",
      "rejected",
      "done",
      "done",
      "done",
    ]);
    expect(await credits(room)).toMatchObject({ used: 4, remaining: 0 });
    expect(await limits(room)).toEqual([]);
    expect((await room.newest()).steps).not.toContain("held");
  });

  test("ends as limited once they are used up, and one letter tells of all of them", async () => {
    await using room = await heldRoom(2);
    const drained = await room.begin(from("Bob <bob@example.org>"));
    for (let mail = 0; mail < 4; mail += 1) await room.send(from("Bob <bob@example.org>"));
    expect(await statuses(room)).toEqual(Array.from({ length: 5 }, () => "received"));
    room.open();
    await drained();
    expect(await statuses(room)).toEqual(["done", "done", "limited", "limited", "limited"]);
    expect(await room.newest()).toMatchObject({ reason: "credit_limit", steps: "[]", credits_charged: 0 });
    const [letter, ...others] = await limits(room);
    expect([letter?.subject, others]).toEqual(["Your Mailwright credits are used up", []]);
    expect(letter?.text).toContain("3 mails came in since then");
    expect(await waiting(room)).toEqual([]);
    // Those that come now end at once, as nothing is held any more.
    await room.send(from("Bob <bob@example.org>"));
    expect((await room.newest()).state).toBe("limited");
  });

  test("has its turn in its order, and does not hold up its conversation", async () => {
    await using room = await heldRoom(3, {
      rules: [{ name: "Skip", when: [{ field: "subject", contains: ["Offer"] }], do: { skip: true } }],
    });
    const drained = await room.begin(from("c@customer.example", "Mail 0"));
    for (const n of [1, 2]) await room.send(from(`o${n}@customer.example`, `Offer ${n}`));
    const first = from("c@customer.example", "Mail 1");
    await room.send(first);
    const headers = { ...freshId().headers, "In-Reply-To": first.headers?.["Message-ID"] ?? "" };
    await room.send({ ...from("c@customer.example", "Mail 2"), headers });
    expect((await waiting(room)).map(({ lane }) => lane)).toEqual([null, null]);
    room.open();
    await drained();
    expect(order(room)).toEqual(["Mail 0", "Mail 1", "Mail 2"]);
    expect(await statuses(room)).toEqual(["done", "rejected", "rejected", "done", "done"]);
  });

  test("of two, takes the only credit that is given back", async () => {
    await using room = await heldRoom(2, NEWSLETTERS);
    const drained = await room.begin(from("c1@customer.example"));
    await room.send(from("news@shop.example"));
    await Promise.all([2, 3].map((n) => room.send(from(`c${n}@customer.example`))));
    expect(await waiting(room)).toHaveLength(2);
    room.open();
    await drained();
    expect(await statuses(room)).toEqual(["done", "rejected", "done", "limited"]);
    expect(await credits(room)).toMatchObject({ used: 2, remaining: 0 });
  });

  test("of a stranger waits, and one of the owner is worked on before it", async () => {
    await using room = await heldRoom(5, NEWSLETTERS);
    const drained = await room.begin(from("c@customer.example", "Mail 1"));
    for (const n of [1, 2, 3]) await room.send(from(`news${n}@shop.example`));
    await room.send(from("c@customer.example", "Mail 3"));
    await room.send(from("Ada <ada@example.com>", "Mail 2"));
    expect(await waiting(room)).toHaveLength(1);
    await room.send(from("Ada <ada@example.com>", "Mail 4"));
    expect(await waiting(room)).toHaveLength(2);
    room.open();
    await drained();
    expect(order(room).toSorted()).toEqual(["Mail 1", "Mail 2", "Mail 3", "Mail 4"]);
    expect(order(room).indexOf("Mail 2")).toBe(1);
    expect(await limits(room)).toEqual([]);
  });

  test("waits for an hour at most, and what it ends with says so", async () => {
    await using room = await heldRoom(1, {
      rules: [
        {
          name: "Later",
          when: [{ field: "subject", contains: ["Later"] }],
          do: { wait: { until: "08:00", zone: "UTC" } },
        },
      ],
    });
    await room.send(from("c1@customer.example", "Later"));
    await room.drain();
    await room.send(from("c2@customer.example"));
    for (const [wait, state] of [
      ["59m", "received"],
      ["2m", "limited"],
    ] as const) {
      room.clock.advance(wait);
      await room.drain();
      expect((await room.newest()).state).toBe(state);
    }
    expect((await room.newest()).error).toBe(
      "All credits that were left this month were held for other messages for an hour, so this one was not worked on.",
    );
    expect(await limits(room)).toHaveLength(1);
  });

  test("goes on within minutes where the plan has more", async () => {
    await using room = await heldRoom(1);
    const drained = await room.begin(from("c1@customer.example"));
    await room.send(from("c2@customer.example"));
    await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
    room.clock.advance("5m");
    room.open();
    await drained();
    expect(await statuses(room)).toEqual(["done", "done"]);
  });

  test("can be cancelled, and what waits behind it goes on", async () => {
    await using room = await heldRoom(2, NEWSLETTERS);
    const drained = await room.begin(from("c1@customer.example"));
    await room.send(from("news@shop.example"));
    for (const n of [2, 3]) await room.send(from(`c${n}@customer.example`));
    const [last, first] = await room.activity();
    expect((await room.owner.delete(`/messages/${first.message_id}`)).status).toBe(409);
    expect((await room.owner.post(`/messages/${first.message_id}/cancel`)).body).toMatchObject({
      status: "failed",
      credits: { charged: 0 },
    });
    expect((await room.owner.delete(`/messages/${first.message_id}`)).status).toBe(204);
    room.open();
    await drained();
    expect((await room.owner.get(`/messages/${last.message_id}`)).body.status).toBe("done");
    expect(await waiting(room)).toEqual([]);
  });

  test("fails with its inbox, and is erased with its account", async () => {
    await using room = await heldRoom(1);
    const drained = await room.begin(from("c1@customer.example"));
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    await room.send({ ...from("c2@customer.example"), rcpt: other.address });
    const { id } = await room.newest();
    expect((await room.owner.delete(`/inboxes/${other.id}`)).status).toBe(204);
    room.clock.advance("5m");
    room.open();
    await drained();
    const ended = () => room.app.db.selectFrom("messages").select("reason").where("id", "=", id);
    expect(await ended().executeTakeFirst()).toEqual({ reason: "inbox_deleted" });
  });

  test("waits behind the pause of its inbox first, however long that is", async () => {
    await using room = await heldRoom(1, {}, 4);
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    await room.owner.patch(`/inboxes/${other.id}`, { paused: "keep" });
    const drained = await room.begin(from("c1@customer.example"));
    await room.send({ ...from("c2@customer.example"), rcpt: other.address });
    expect(await waiting(room)).toEqual([]);
    room.clock.advance("3h");
    await room.owner.patch(`/inboxes/${other.id}`, { paused: null });
    room.app.worker?.start();
    await until(async () => (await waiting(room)).length === 1);
    await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
    room.open();
    await drained();
    expect(await statuses(room)).toEqual(["done", "done"]);
  });

  test("is shown to the operator with what it waits for", async () => {
    await using room = await heldRoom(1, {}, 4);
    const drained = await room.begin(from("c1@customer.example"));
    await room.send(from("c2@customer.example"));
    const { body } = await room.owner.get("/admin/queue?kind=route_message&state=waiting");
    expect(body.items).toMatchObject([{ why: "the credits that are left are held for other messages" }]);
    expect((await room.owner.post(`/admin/queue/${body.items[0].id}/retry`)).status).toBe(204);
    room.app.worker?.start();
    await until(async () => (await waiting(room)).some(({ run_at }) => run_at > room.app.now()));
    room.open();
    await drained();
    expect(await statuses(room)).toEqual(["done", "limited"]);
  });
});

test("a call hears at once that the credits are held; what is tried again, and the run of a schedule, wait", async () => {
  await using room = await heldRoom(3, { rules: [] });
  room.model.fault = "unauthorized";
  await room.send(from("Ada <ada@example.com>"));
  await room.drain();
  const failed = await room.newest();
  room.model.fault = "none";
  const order_daily = { instruction: "--every=daily\nSay it" };
  expect((await room.owner.post("/v1/messages", order_daily)).body.status).toBe("done");
  const { id: schedule } = (await room.owner.get("/v1/schedules")).body[0];
  const drained = await room.begin(from("Ada <ada@example.com>"));
  for (let n = 0; n < 2; n += 1) await room.send(from("Ada <ada@example.com>"));
  const call = await room.owner.post("/v1/messages", { instruction: "Say it" });
  expect([call.status, call.body.code, call.body.credits.charged]).toEqual([429, "credit_limit", 0]);
  expect(call.body.error).toContain("are held for messages that have not ended. Call again");
  const again = await room.owner.post(`/messages/${failed.id}/retry`);
  expect([again.status, again.body.status]).toEqual([202, "processing"]);
  const ran = await room.owner.post(`/v1/schedules/${schedule}/run`);
  expect([ran.status, ran.body.status]).toEqual([202, "processing"]);
  expect(await waiting(room)).toHaveLength(2);
  room.open();
  await drained();
  expect((await room.owner.get(`/v1/schedules/${schedule}`)).body.failures).toBe(1);
  expect(
    (await room.activity()).find(({ message_id }) => message_id === again.body.message_id),
  ).toMatchObject({
    status: "limited",
    error: "Credit limit reached: this account has no credits left this month.",
  });
});

test("an account whose mail waits for a credit is erased with it", async () => {
  await using room = await heldRoom(1);
  const drained = await room.begin(from("c1@customer.example"));
  await room.send(from("c2@customer.example"));
  expect(await waiting(room)).toHaveLength(1);
  const { user } = room.owner;
  await deleteAccount(room.app, user, { confirm: user.email, client: "127.0.0.1", key_id: null });
  room.open();
  await drained();
  expect(await waiting(room)).toEqual([]);
  expect(await room.app.db.selectFrom("messages").select("id").execute()).toEqual([]);
});
