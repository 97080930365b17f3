import { describe, expect, test } from "bun:test";
import { createWorker } from "../../src/jobs/worker.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { testApp } from "../support/app.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { startModelServer } from "../support/model-server.ts";
import { create, CREATE, toolRoom } from "../support/tool-room.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { deskOf, modelAt } from "./desk.ts";

/** A model that has been asked, and answers when it is told to. */
function heldModel() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<string>();
  const reply = (): Promise<string> => {
    asked.resolve();
    return answer.promise;
  };
  return { reply, asked: asked.promise, answer: answer.resolve };
}

const ledgerOf = (room: Pick<Mailroom, "app">) =>
  room.app.db.selectFrom("ledger").select(["kind", "amount"]).where("kind", "!=", "grant").execute();
const jobsOf = (room: Pick<Mailroom, "app">, kind: string) =>
  room.app.db.selectFrom("jobs").select(["id", "status"]).where("kind", "=", kind).execute();

describe("a message that is cancelled", () => {
  test("while it is worked on has failed at once, costs nothing, and what the model says later changes nothing", async () => {
    const held = heldModel();
    await using receiver = startReceiver();
    await using room = await mailroom({
      model: { reply: held.reply },
      config: { webhooks: { allow: ["127.0.0.1"] } },
    });
    await room.owner.post("/v1/webhooks", { url: receiver.url, event_types: ["message.failed"] });
    await room.send({ text: "Sum up" });
    const { id } = await room.newest();
    const work = room.drain();
    await held.asked;
    expect((await room.owner.get(`/messages/${id}`)).body).toMatchObject({ running: true });
    const { status, body } = await room.owner.post(`/messages/${id}/cancel`);
    expect([status, body]).toMatchObject([
      200,
      { status: "failed", error: expect.stringContaining("cancelled"), credits: { charged: 0 }, result: "" },
    ]);
    held.answer("Too late.");
    await work;
    await room.drain();
    expect(await room.newest()).toMatchObject({
      id,
      state: "failed",
      reason: "cancelled",
      result: "",
      credits_charged: 0,
      reply_status: "none",
    });
    expect(await ledgerOf(room)).toMatchObject([{ kind: "reserve" }, { kind: "release" }]);
    expect(await room.outgoing()).toEqual([]);
    expect(await jobsOf(room, "route_message")).toEqual([]);
    await receiver.reached(1);
    expect(receiver.received.map(({ event }) => event.type)).toEqual(["message.failed"]);
    const story = (await room.owner.get(`/messages/${id}`)).body;
    expect(story).toMatchObject({ running: false, status: "failed", reason: "cancelled" });
  });

  test("while it waits is never begun, and the next of its conversation is", async () => {
    await using room = await mailroom({ model: { reply: () => "Done." } });
    await room.send({ text: "First" });
    const { id } = await room.newest();
    expect((await room.owner.post(`/messages/${id}/cancel`)).body.status).toBe("failed");
    await room.drain();
    expect(room.model.requests).toEqual([]);
    expect(await room.newest()).toMatchObject({ id, reason: "cancelled" });
    const { inbox_id } = (await room.owner.get(`/messages/${id}`)).body;
    const { conversation_id } = (await room.owner.get(`/messages/${id}`)).body;
    const next = await room.owner.post("/v1/messages", {
      instruction: "Second",
      inbox_id,
      conversation_id,
    });
    expect(next.body.status).toBe("done");
  });

  test("is cancelled once, however often that is asked for and by how many at once", async () => {
    await using receiver = startReceiver();
    await using room = await mailroom({
      model: { reply: () => "Done." },
      config: { webhooks: { allow: ["127.0.0.1"] } },
    });
    await room.owner.post("/v1/webhooks", { url: receiver.url, event_types: ["*"] });
    await room.send({ text: "First" });
    const { id } = await room.newest();
    const answers = await Promise.all([1, 2, 3].map(() => room.owner.post(`/messages/${id}/cancel`)));
    expect(answers.map(({ status, body }) => [status, body.status])).toEqual([
      [200, "failed"],
      [200, "failed"],
      [200, "failed"],
    ]);
    expect(await ledgerOf(room)).toMatchObject([{ kind: "reserve" }, { kind: "release" }]);
    const events = await room.app.db.selectFrom("events").select("type").execute();
    expect(events.map(({ type }) => type)).toEqual(["message.received", "message.failed"]);
  });

  test("gives its waiting caller the answer, and a retry of the call the same", async () => {
    const held = heldModel();
    await using model = startModelServer({ reply: held.reply });
    await using t = await testApp(modelAt(model));
    const { ada } = await deskOf(t);
    const key = { "idempotency-key": "one" };
    const call = ada.post("/v1/messages", { instruction: "Sum up" }, key);
    await held.asked;
    const { body: list } = await ada.get("/messages");
    const { message_id } = list.items[0];
    await ada.post(`/messages/${message_id}/cancel`);
    const first = await call;
    expect([first.status, first.body.status]).toEqual([200, "failed"]);
    expect(first.body.error).toContain("cancelled");
    held.answer("Too late.");
    await t.drain();
    const again = await ada.post("/v1/messages", { instruction: "Sum up" }, key);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toMatchObject({ message_id, status: "failed" });
    expect(model.requests).toHaveLength(1);
  });

  test("that has ended says so, and stays as it was", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    await room.send({ text: "Sum up" });
    await room.drain();
    const { id } = await room.newest();
    const { status, body } = await room.owner.post(`/messages/${id}/cancel`);
    expect([status, body.code]).toEqual([409, "conflict"]);
    expect(body.detail).toContain("is done");
    expect(await room.newest()).toMatchObject({ state: "done", result: "All well.", credits_charged: 1 });
  });

  test("of somebody else, or of nobody, is not found, and goes on", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    await room.send({ text: "Sum up" });
    const { id } = await room.newest();
    const eve = await room.as("eve@example.net");
    expect((await eve.post(`/messages/${id}/cancel`)).status).toBe(404);
    expect((await room.owner.post(`/messages/${Bun.randomUUIDv7()}/cancel`)).status).toBe(404);
    expect((await room.owner.post("/messages/not-an-id/cancel")).status).toBe(422);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done" });
  });

  test("in the very commit that closes it ends one way, and is told of that way", async () => {
    for (let round = 0; round < 8; round += 1) {
      await using room = await mailroom({ model: { reply: () => "All well." } });
      await room.send({ text: "Sum up" });
      const { id } = await room.newest();
      const work = room.drain();
      await Bun.sleep(round);
      const { status } = await room.owner.post(`/messages/${id}/cancel`);
      await work;
      await room.drain();
      const row = await room.newest();
      const won = status === 200;
      expect([row.state, row.credits_charged]).toEqual(won ? ["failed", 0] : ["done", 1]);
      expect((await room.outgoing()).length).toBe(won ? 0 : 1);
      expect((await ledgerOf(room)).map(({ kind }) => kind)).toEqual(["reserve", won ? "release" : "settle"]);
    }
  });

  test("is not begun by the next process", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    await room.send({ text: "Sum up" });
    const { id } = await room.newest();
    await room.owner.post(`/messages/${id}/cancel`);
    await using worker = createWorker(room.app, jobHandlers(room.app));
    await worker.drain();
    expect(room.model.requests).toEqual([]);
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "cancelled" });
  });

  test("is not worked on by its coming again, and can be tried again", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const mail = { text: "Sum up", headers: { "Message-ID": "<again@example.com>" } };
    await room.send(mail);
    const { id } = await room.newest();
    await room.owner.post(`/messages/${id}/cancel`);
    expect(await room.send(mail)).toStartWith("250");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ message_id: id, duplicates: 1, status: "failed" }]);
    const { status, body } = await room.owner.post(`/messages/${id}/retry`);
    expect(status).toBe(202);
    await room.drain();
    expect(await room.newest()).toMatchObject({ id: body.message_id, state: "done", result: "All well." });
  });

  test("is told of to a listed sender, and to no stranger", async () => {
    for (const [listed, told] of [
      [["grace@example.net"], ["grace@example.net"]],
      [[], []],
    ] as const) {
      await using room = await mailroom({ inbox: { allowlist_senders: listed } });
      await room.send({ from: "Grace <grace@example.net>", text: "Sum up" });
      const { id } = await room.newest();
      await room.owner.post(`/messages/${id}/cancel`);
      await room.drain();
      const mails = await room.outgoing();
      expect(mails.map(({ envelope_to }) => envelope_to)).toEqual([...told]);
      for (const { raw } of mails) expect(Buffer.from(raw ?? []).toString()).toContain("was cancelled");
    }
  });

  test("in the middle of a tool's call keeps that it was begun, and no retry makes it a second time", async () => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<string>();
    const run = (): Promise<string> => {
      begun.resolve();
      return end.promise;
    };
    await using room = await toolRoom([[create({ title: "Lunch" })], "All is done."], {
      served: [{ ...CREATE, run }],
    });
    await room.send({ text: "@calendar Make it" });
    const { id } = await room.newest();
    const work = room.drain();
    await begun.promise;
    const { body } = await room.owner.post(`/messages/${id}/cancel`);
    expect(body.steps).toMatchObject([
      {
        type: "tool_call",
        server: "mcp:calendar",
        arguments: { title: "Lunch" },
        status: "error",
        output: expect.stringContaining("may or may not have been done"),
      },
    ]);
    end.resolve("created 7");
    await work;
    expect(room.tools.calls).toHaveLength(1);
    await room.owner.post(`/messages/${id}/retry`);
    await room.drain();
    const retried = await room.newest();
    expect([retried.state, room.tools.calls.length]).toEqual(["done", 1]);
    expect(retried.steps).toContain("may or may not have been done");
  });
});

describe("the story of a mail", () => {
  test("names whom it was to, and the messages beside it", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    await room.send({ text: "One" });
    await room.send({
      text: "Two",
      to: `${room.inbox.address}, Bob <bob@example.net>`,
      headers: { "Message-ID": "<two@example.com>", Cc: "grace@example.net" },
    });
    await room.send({ text: "Three" });
    await room.drain();
    const [three, two, one] = (await room.activity()).map(({ message_id }) => message_id);
    const story = async (id: string) => (await room.owner.get(`/messages/${id}`)).body;
    expect(await story(two)).toMatchObject({
      to: [room.inbox.address, "bob@example.net"],
      cc: ["grace@example.net"],
      newer: three,
      older: one,
    });
    expect(await story(three)).toMatchObject({ newer: null, older: two });
    expect(await story(one)).toMatchObject({ newer: two, older: null, cc: [] });
  });
});
