import { describe, expect, test } from "bun:test";
import { takeOver } from "../../src/serve.ts";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { purge } from "../support/purge.ts";

/** Runs one after the other. */
const SINGLY = { plans: { team: { concurrent_routes: 1 } } };

const pause = (room: Mailroom, paused: "keep" | "refuse" | null) =>
  room.owner.patch(`/inboxes/${room.inbox.id}`, { paused });
const states = async (room: Mailroom) =>
  (await room.activity()).map(({ subject, status, reason }) => [subject, status, reason]);
const asked = (room: Mailroom) => room.model.requests.length;
const order = (room: Mailroom) =>
  room.model.requests.map(({ body }) => /Mail \d/.exec(JSON.stringify(body?.messages))?.[0]);

describe("an inbox that is paused", () => {
  test("takes mail that waits, and works on it in its order once it goes on, however often the server was started", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." }, config: SINGLY });
    expect((await pause(room, "keep")).body.paused).toBe("keep");
    for (const n of [1, 2, 3]) {
      expect(await room.send({ subject: `Mail ${n}`, text: `Mail ${n}` })).toStartWith("250");
      room.clock.advance("1m");
    }
    await room.drain();
    await takeOver(room.app);
    room.clock.advance("3d");
    await room.drain();
    expect(asked(room)).toBe(0);
    expect((await states(room)).map(([, status]) => status)).toEqual(["received", "received", "received"]);
    expect((await pause(room, null)).body.paused).toBeNull();
    await room.drain();
    expect(order(room)).toEqual(["Mail 1", "Mail 2", "Mail 3"]);
    expect((await states(room)).map(([, status]) => status)).toEqual(["done", "done", "done"]);
    expect((await room.outgoing()).length).toBe(3);
  });

  test("has what waited for its turn before wait on, too, and its place in the order stays", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." }, config: SINGLY });
    await room.send({ text: "Mail 1" });
    await pause(room, "keep");
    await room.send({ text: "Mail 2" });
    await room.drain();
    expect(asked(room)).toBe(0);
    await pause(room, null);
    await room.drain();
    expect(order(room)).toEqual(["Mail 1", "Mail 2"]);
  });

  test("lets go on what was under way", async () => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<string>();
    await using room = await mailroom({
      model: {
        reply: () => {
          begun.resolve();
          return end.promise;
        },
      },
    });
    await room.send({ text: "Mail 1" });
    const work = room.drain();
    await begun.promise;
    await pause(room, "keep");
    end.resolve("Done.");
    await work;
    expect(await room.newest()).toMatchObject({ state: "done", result: "Done.", reply_status: "sent" });
  });

  test("refuses calls, tests and retries with a word of its own, and does not charge them; a key replays what it made", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." } });
    const call = { instruction: "Sum up", inbox_id: room.inbox.id };
    const key = { "idempotency-key": "one" };
    const before = (await room.owner.post("/v1/messages", call, key)).body;
    room.model.fault = "unauthorized";
    const failed = (await room.owner.post("/v1/messages", call)).body;
    await pause(room, "refuse");
    for (const answer of [
      await room.owner.post("/v1/messages", call),
      await room.owner.post("/v1/messages", { ...call, async: true }),
      await room.owner.post(`/inboxes/${room.inbox.id}/test`, {}),
      await room.owner.post(`/messages/${failed.message_id}/retry`),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([409, "inbox_paused"]);
      expect(answer.body.fix).toContain('{"paused": null}');
    }
    const again = await room.owner.post("/v1/messages", call, key);
    expect([again.status, again.body.message_id]).toEqual([200, before.message_id]);
    expect((await room.activity()).length).toBe(2);
  });

  test("asks senders to come later where its owner wants that, and shows each once a day", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." } });
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    await pause(room, "refuse");
    for (let time = 0; time < 3; time += 1) {
      const said = await room.send({ from: "eve@example.net", text: "Mail 1" });
      expect(said).toStartWith("450 4.2.1");
    }
    expect(await room.send({ text: "Of the owner" })).toStartWith("450");
    expect(await room.send({ text: "Elsewhere", rcpt: other.address })).toStartWith("250");
    await room.drain();
    expect((await states(room)).toSorted()).toEqual(
      [
        ["Hello", "done", null],
        [null, "rejected", "inbox_paused"],
        [null, "rejected", "inbox_paused"],
      ].toSorted(),
    );
    const { body: activity } = await room.owner.get("/inboxes/activity");
    expect(activity.map(({ waiting }: { waiting: number }) => waiting)).toEqual([0, 0]);
    await pause(room, null);
    expect(await room.send({ from: "eve@example.net", text: "Mail 1" })).toStartWith("250");
  });

  test("is nothing that the operator has to see to", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." } });
    await pause(room, "keep");
    await room.send({ text: "Mail 1" });
    room.clock.advance("2d");
    await room.drain();
    expect(await queueWarnings(room.app)).toEqual({});
    const { waiting, queue } = (await room.owner.get("/admin/overview")).body;
    expect(waiting.jobs).toBe(0);
    expect(queue.find(({ kind }: { kind: string }) => kind === "route_message").oldest_seconds).toBe(0);
    const { items } = (await room.owner.get("/admin/queue?kind=route_message")).body;
    expect(items).toMatchObject([{ state: "waiting", why: "its inbox is paused", next_at: null }]);
    const refused = await room.owner.post(`/admin/queue/${items[0].id}/retry`);
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      "This job waits because its inbox is paused by its owner.",
    ]);
    await room.drain();
    expect(asked(room)).toBe(0);
    await pause(room, null);
    await room.drain();
    expect(asked(room)).toBe(1);
  });

  test("that is paused again while it goes on keeps what is left", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." }, config: SINGLY });
    await pause(room, "keep");
    for (const n of [1, 2]) await room.send({ text: `Mail ${n}` });
    await pause(room, null);
    await pause(room, "keep");
    await room.drain();
    expect(asked(room)).toBe(0);
    await pause(room, null);
    await room.drain();
    expect(order(room)).toEqual(["Mail 1", "Mail 2"]);
  });

  test("lets what waits be cancelled, and ends it when the inbox is deleted", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." } });
    await pause(room, "keep");
    for (const n of [1, 2]) await room.send({ subject: `Mail ${n}`, text: `Mail ${n}` });
    const [, { message_id }] = (await room.activity()) as [unknown, { message_id: string }];
    expect((await room.owner.post(`/messages/${message_id}/cancel`)).status).toBe(200);
    await room.owner.delete(`/inboxes/${room.inbox.id}`);
    await room.drain();
    expect(await states(room)).toEqual([
      ["Mail 2", "failed", "inbox_deleted"],
      ["Mail 1", "failed", "cancelled"],
    ]);
    expect(asked(room)).toBe(0);
  });

  test("gives up what waits for longer than it keeps its messages, gives the credit back and tells who wrote it", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." }, inbox: { retention_days: 5 } });
    await pause(room, "keep");
    await room.send({ text: "Mail 1" });
    room.clock.advance("4d");
    await purge(room);
    expect((await room.newest()).state).toBe("received");
    room.clock.advance("2d");
    await room.send({ text: "Mail 2" });
    await purge(room);
    await room.drain();
    const [newer, older] = await room.activity();
    expect(newer.status).toBe("received");
    expect(older).toMatchObject({ status: "failed", reason: "paused_too_long", credits_charged: 0 });
    expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["notice"]);
    await pause(room, null);
    await room.drain();
    expect(order(room)).toEqual(["Mail 2"]);
  });

  test("counts what waits as stored, and is full as any is", async () => {
    const config = { plans: { team: { storage_mb: 1 } } };
    await using room = await mailroom({ config });
    await pause(room, "keep");
    const said: string[] = [];
    for (let n = 0; n < 5; n += 1) said.push(await room.send({ text: `Mail ${n}\n${"x".repeat(300_000)}` }));
    expect(said.at(0)).toStartWith("250");
    expect(said.at(-1)).toStartWith("452");
  });

  test.each([["yes"], [true], [""], [{ keep: true }]])("cannot be paused by %j", async (paused) => {
    await using room = await mailroom();
    const { status } = await room.owner.patch(`/inboxes/${room.inbox.id}`, { paused });
    expect(status).toBe(422);
    expect((await room.owner.get(`/inboxes/${room.inbox.id}`)).body.paused).toBeNull();
  });
});
