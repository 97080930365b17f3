import { describe, expect, test } from "bun:test";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { STOPPING } from "../../src/jobs/run-job.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { takeOver } from "../../src/serve.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { startModelServer } from "../support/model-server.ts";
import { testApp } from "../support/app.ts";
import { until } from "../support/until.ts";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { deskOf, modelAt } from "./desk.ts";

const idsOf = async (room: Mailroom) => (await room.activity()).map(({ message_id }) => message_id);

async function doneMail(room: Mailroom, text = "Sum up", id = "<one@example.com>"): Promise<string> {
  await room.send({
    text,
    headers: { "Message-ID": id },
    attachments: [{ filename: "a.txt", content_type: "text/plain", content: "of the file" }],
  });
  await room.drain();
  return (await room.newest()).id;
}

const kept = async (room: Mailroom, table: "messages" | "raw_mails" | "attachments" | "outgoing_mails") =>
  (await room.app.db.selectFrom(table).select("id").execute()).length;

describe("a message that is deleted", () => {
  test("is gone from everything that shows it at once, can be brought back, and is erased soon after", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const id = await doneMail(room);
    const story = (await room.owner.get(`/messages/${id}`)).body;
    const [file] = story.attachments;
    const paths = [
      `/messages/${id}`,
      `/v1/messages/${id}`,
      `/messages/${id}/raw`,
      file.url,
      `/conversations/${story.conversation_id}`,
    ];
    const statuses = async () => Promise.all(paths.map(async (path) => (await room.owner.get(path)).status));
    expect((await room.owner.delete(`/messages/${id}`)).status).toBe(204);
    expect(await statuses()).toEqual(paths.map(() => 404));
    expect(await idsOf(room)).toEqual([]);
    expect((await room.owner.get("/conversations")).body.items).toEqual([]);
    expect((await room.owner.delete(`/messages/${id}`)).status).toBe(404);
    room.clock.advance("29s");
    await room.drain();
    expect((await room.owner.post(`/messages/${id}/restore`)).status).toBe(204);
    expect(await statuses()).toEqual(paths.map(() => 200));
    expect(await idsOf(room)).toEqual([id]);
    room.clock.advance("10m");
    await room.drain();
    expect(await idsOf(room)).toEqual([id]);
    await room.owner.delete(`/messages/${id}`);
    room.clock.advance("46s");
    await room.drain();
    for (const table of ["messages", "raw_mails", "attachments", "outgoing_mails"] as const)
      expect([table, await kept(room, table)]).toEqual([table, 0]);
    expect((await room.owner.post(`/messages/${id}/restore`)).status).toBe(404);
  });

  test("stays counted, and is known again: the same mail is not worked on a second time", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const id = await doneMail(room);
    const ledger = await room.app.db.selectFrom("ledger").selectAll().execute();
    const { body: me } = await room.owner.get("/auth/me");
    await room.owner.delete(`/messages/${id}`);
    await doneMail(room);
    room.clock.advance("46s");
    await room.drain();
    await doneMail(room);
    expect(room.model.requests).toHaveLength(1);
    expect(await room.app.db.selectFrom("ledger").selectAll().execute()).toEqual(ledger);
    expect((await room.owner.get("/auth/me")).body.credits).toEqual(me.credits);
    expect((await room.outgoing()).length).toBe(0);
  });

  test("is not made a second time by the Idempotency-Key that made it", async () => {
    await using model = startModelServer({ reply: () => "All well." });
    await using t = await testApp(modelAt(model));
    const { ada } = await deskOf(t);
    const key = { "idempotency-key": "one" };
    const { body } = await ada.post("/v1/messages", { instruction: "Sum up" }, key);
    await ada.delete(`/messages/${body.message_id}`);
    for (const span of ["1s", "60s"]) {
      t.clock.advance(span);
      await t.drain();
      const again = await ada.post("/v1/messages", { instruction: "Sum up" }, key);
      expect([again.status, again.body.detail]).toEqual([404, expect.stringContaining("has been deleted")]);
    }
    expect(model.requests).toHaveLength(1);
    const other = await ada.post("/v1/messages", { instruction: "Another" }, key);
    expect(other.body.code).toBe("idempotency_key_reuse");
  });

  test("is not lost while it is worked on: it has to be cancelled first", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    await room.send({ text: "Sum up" });
    const { id, conversation_id } = await room.newest();
    for (const path of [`/messages/${id}`, `/conversations/${conversation_id}`]) {
      const { status, body } = await room.owner.delete(path);
      expect([status, body.code]).toEqual([409, "conflict"]);
      expect(body.fix).toContain("cancel");
    }
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", reply_status: "sent", deleted_at: null });
    await room.send({ text: "Again" });
    const next = await room.newest();
    await room.owner.post(`/messages/${next.id}/cancel`);
    expect((await room.owner.delete(`/messages/${next.id}`)).status).toBe(204);
  });

  test("waits with its end for a webhook that is still to hear of it", async () => {
    const answers = [new Response("busy", { status: 503 })];
    await using receiver = startReceiver(() => answers.shift() ?? new Response(null, { status: 204 }));
    await using room = await mailroom({
      model: { reply: () => "All well." },
      config: { webhooks: { ...TO_LOOPBACK, backoff: [0, 600] } },
    });
    await room.owner.post("/v1/webhooks", { url: receiver.url, event_types: ["message.completed"] });
    const id = await doneMail(room);
    expect(receiver.received).toHaveLength(1);
    await room.owner.delete(`/messages/${id}`);
    room.clock.advance("2m");
    await room.drain();
    expect(await kept(room, "messages")).toBe(1);
    expect(await idsOf(room)).toEqual([]);
    room.clock.advance("10m");
    await room.drain();
    expect(receiver.received).toHaveLength(2);
    room.clock.advance("2m");
    await room.drain();
    expect(await kept(room, "messages")).toBe(0);
  });

  test("of somebody else, or of nobody, is not found, and stays", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const id = await doneMail(room);
    const { conversation_id } = await room.newest();
    const eve = await room.as("eve@example.net");
    for (const path of [`/messages/${id}`, `/conversations/${conversation_id}`]) {
      expect((await eve.delete(path)).status).toBe(404);
      expect((await eve.post(`${path}/restore`)).status).toBe(404);
    }
    await room.owner.delete(`/messages/${id}`);
    expect((await eve.post(`/messages/${id}/restore`)).status).toBe(404);
    expect((await room.newest()).deleted_at).not.toBeNull();
    expect((await room.owner.delete("/messages/odd")).status).toBe(422);
  });

  test("is no longer what the model is reminded of", async () => {
    await using room = await mailroom({ model: { reply: () => "The code is 1234." } });
    const { body: first } = await room.owner.post("/v1/messages", { instruction: "Say the code" });
    await room.owner.delete(`/messages/${first.message_id}`);
    await room.owner.post("/v1/messages", {
      instruction: "And again?",
      conversation_id: first.conversation_id,
    });
    expect(JSON.stringify(room.model.requests.at(-1)?.body)).not.toContain("1234");
  });

  test("goes with its whole conversation, and comes back with it", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const { body: first } = await room.owner.post("/v1/messages", { instruction: "One" });
    const { conversation_id } = first;
    await room.owner.post("/v1/messages", { instruction: "Two", conversation_id });
    await room.owner.post("/v1/messages", { instruction: "Elsewhere" });
    const path = `/conversations/${conversation_id}`;
    expect((await room.owner.delete(path)).status).toBe(204);
    expect((await room.activity()).map(({ subject }) => subject)).toEqual(["Elsewhere"]);
    expect((await room.owner.get(path)).status).toBe(404);
    expect((await room.owner.post(`${path}/restore`)).status).toBe(204);
    expect((await room.owner.get(path)).body.turns).toHaveLength(2);
    await room.owner.delete(path);
    room.clock.advance("46s");
    await room.drain();
    expect((await room.owner.post(`${path}/restore`)).status).toBe(404);
    expect(await kept(room, "messages")).toBe(1);
    const conversations = await room.app.db.selectFrom("conversations").select("subject").execute();
    expect(conversations.map(({ subject }) => subject)).toEqual(["Elsewhere"]);
  });

  test("goes with a long conversation some at a time, so that others have their turn, and comes back so", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const { conversation_id } = (await room.owner.post("/v1/messages", { instruction: "One" })).body;
    const row = await room.newest();
    for (let hundred = 0; hundred < 20; hundred += 1) {
      const rows = Array.from({ length: 100 }, () => ({ ...row, id: room.app.newId() }));
      await room.app.db.insertInto("messages").values(rows).execute();
    }
    const path = `/conversations/${conversation_id}`;
    const shown = async () => {
      const found = room.app.db.selectFrom("messages").select("id").where("deleted_at", "is", null);
      return (await found.execute()).length;
    };
    for (const [act, left] of [
      [() => room.owner.delete(path), 0],
      [() => room.owner.post(`${path}/restore`), 2_001],
    ] as const) {
      const ended: string[] = [];
      const changed = act().then(({ status }) => ended.push(`conversation ${status}`));
      for (let other = 0; other < 3; other += 1)
        ended.push(
          `other ${(await room.owner.patch(`/inboxes/${room.inbox.id}`, { label: `L${other}` })).status}`,
        );
      await changed;
      expect(ended).toEqual(["other 200", "other 200", "other 200", "conversation 204"]);
      expect(await shown()).toBe(left);
    }
  });

  test("comes back with its conversation only if it went with it, be it in the same second", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const { body: first } = await room.owner.post("/v1/messages", { instruction: "One" });
    const { conversation_id, message_id } = first;
    const { body: second } = await room.owner.post("/v1/messages", { instruction: "Two", conversation_id });
    await room.owner.delete(`/messages/${message_id}`);
    await room.owner.delete(`/conversations/${conversation_id}`);
    await room.owner.post(`/conversations/${conversation_id}/restore`);
    expect(await idsOf(room)).toEqual([second.message_id]);
  });

  test("while a call waits for it is answered all the same, and told to whoever asks again", async () => {
    const begun = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    await using room = await mailroom({
      model: {
        reply: async () => {
          begun.resolve();
          await goOn.promise;
          return "All well.";
        },
      },
    });
    const call = () =>
      room.owner.post("/v1/messages", { instruction: "One" }, { "idempotency-key": "the-one" });
    const asked = call();
    await begun.promise;
    const [{ message_id }] = await room.activity();
    const again = call();
    const hide = room.app.db.updateTable("messages").set({ deleted_at: 1 }).where("id", "=", message_id);
    void room.app.finished.wait(message_id, 10_000).then(() => hide.execute());
    await until(() => room.app.finished.names().length > 0);
    goOn.resolve();
    expect(await asked).toMatchObject({ status: 200, body: { result: "All well." } });
    expect(await again).toMatchObject({
      status: 404,
      body: { detail: "The message of this call has been deleted." },
    });
  });

  test("is erased by the next process, should the first one end before", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const id = await doneMail(room);
    await room.owner.delete(`/messages/${id}`);
    const write = room.app.write;
    let commits = 0;
    // What has been erased is; that it is the last of it is not written any more.
    room.app.write = (operation) => (++commits > 2 ? Promise.reject(STOPPING) : write(operation));
    room.clock.advance("46s");
    await room.drain().catch(() => undefined);
    room.app.write = write;
    await takeOver(room.app);
    await using worker = createWorker(room.app, jobHandlers(room.app));
    await worker.drain();
    for (const table of ["messages", "raw_mails", "attachments"] as const)
      expect([table, await kept(room, table)]).toEqual([table, 0]);
    const jobs = room.app.db.selectFrom("jobs").select("id").where("kind", "=", "erase_messages");
    expect(await jobs.execute()).toEqual([]);
  });

  test("one after the other each has its own half minute", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const ids: string[] = [];
    for (const n of [1, 2])
      ids.push((await room.owner.post("/v1/messages", { instruction: `Number ${n}` })).body.message_id);
    await room.owner.delete(`/messages/${ids[0]}`);
    room.clock.advance("20s");
    await room.owner.delete(`/messages/${ids[1]}`);
    room.clock.advance("26s");
    await room.drain();
    expect(await kept(room, "messages")).toBe(1);
    expect((await room.owner.post(`/messages/${ids[1]}/restore`)).status).toBe(204);
    expect(await idsOf(room)).toEqual([ids[1]]);
  });
});

describe("tags by hand", () => {
  test("take the place of those that it had, and find it", async () => {
    await using room = await mailroom({ model: { reply: () => "All well." } });
    const [local, domain] = room.inbox.address.split("@");
    await room.send({ text: "Sum up", rcpt: `${local}+rent@${domain}` });
    await room.drain();
    const { id } = await room.newest();
    const set = (tags: unknown) => room.owner.patch(`/messages/${id}`, { tags });
    const { body } = await set(["rent", "#Paid", " paid ", "q3/2026".replace("/", "-")]);
    expect(body.tags).toEqual(["rent", "Paid", "q3-2026"]);
    expect((await room.owner.get("/messages?tag=paid")).body.items).toHaveLength(1);
    for (const [tags, path] of [
      [["two words"], "body.tags.0"],
      [["fine", ""], "body.tags.1"],
      [["x".repeat(101)], "body.tags.0"],
      [Array.from({ length: 21 }, (_, n) => `t${n}`), "body.tags"],
      ["paid", "body.tags"],
    ] as const) {
      const refused = await set(tags);
      expect([refused.status, refused.body.errors[0].path]).toEqual([422, path]);
    }
    expect((await room.owner.get(`/messages/${id}`)).body.tags).toEqual(["rent", "Paid", "q3-2026"]);
    const eve = await room.as("eve@example.net");
    expect((await eve.patch(`/messages/${id}`, { tags: [] })).status).toBe(404);
    expect((await set([])).body.tags).toEqual([]);
  });
});
