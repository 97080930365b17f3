import { describe, expect, spyOn, test } from "bun:test";
import { sql } from "kysely";
import type { App } from "../../src/app.ts";
import { filesOf, mailsOf } from "../../src/operation/export/bytes.ts";
import type { TestApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { type HookDesk, hookDesk } from "./hook-desk.ts";

/** What an ordinary request does to many rows is done some at a time: others have their turn in between. */
const MANY = 1_000;
const MOST_AT_ONCE = 250;

/** How many rows each transaction changes from now on; every look at the clock of work takes so long that a step fills its time. */
function watchWrites(app: App): { changed: number[] } & Disposable {
  const changed: number[] = [];
  const { write } = app;
  const total = async (tx: App["db"]): Promise<number> => {
    const { rows } = await sql<{ n: number }>`select total_changes() as n`.execute(tx);
    return rows[0]?.n ?? 0;
  };
  app.write = (operation) =>
    write(async (tx) => {
      const before = await total(tx);
      const result = await operation(tx);
      changed.push((await total(tx)) - before);
      return result;
    });
  const real = performance.now.bind(performance);
  let looks = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => real() + 5 * (looks += 1));
  return {
    changed,
    [Symbol.dispose]: () => {
      clock.mockRestore();
      app.write = write;
    },
  };
}

/** So many deliveries of one event at an endpoint, which have failed. */
async function withDeliveries(t: HookDesk, status: "failed" | "pending"): Promise<string> {
  const { id } = await t.hook();
  t.answer(() => new Response(null, { status: 500 }));
  await t.happen();
  await t.drain();
  const row = await t.app.db.selectFrom("webhook_deliveries").selectAll().executeTakeFirstOrThrow();
  const change = { status, next_attempt_at: status === "failed" ? null : t.app.now() + 60 };
  const rows = Array.from({ length: MANY }, () => ({ ...row, ...change, id: t.app.newId() }));
  await t.app.db.deleteFrom("webhook_deliveries").execute();
  for (let from = 0; from < MANY; from += 100)
    await t.app.db
      .insertInto("webhook_deliveries")
      .values(rows.slice(from, from + 100))
      .execute();
  return id;
}

async function countOf(t: HookDesk, status: "failed" | "pending"): Promise<number> {
  const rows = await t.app.db
    .selectFrom("webhook_deliveries")
    .select("id")
    .where("status", "=", status)
    .execute();
  return rows.length;
}

/** So many copies of the only message. */
async function copyMessage({ app }: TestApp): Promise<void> {
  const row = await app.db.selectFrom("messages").selectAll().executeTakeFirstOrThrow();
  for (let count = 0; count < MANY; count += 1)
    await app.db
      .insertInto("messages")
      .values({ ...row, id: app.newId(), dedupe_key: null, rfc_message_id: null })
      .execute();
}

test("an export of many messages without files gives others their turn", async () => {
  await using room = await mailroom();
  await room.owner.post("/v1/messages", { instruction: "Do it" });
  await copyMessage(room);
  let turns = 0;
  let over = false;
  const turn = (): void => {
    turns += 1;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  const parts = [filesOf, mailsOf].map((part) => part(room.app, room.owner.user, []));
  for (const part of parts) for await (const _file of part);
  over = true;
  expect(turns).toBeGreaterThan(MANY / 20);
});

describe("many deliveries of a webhook", () => {
  test("are replayed some at a time, all of them by the answer", async () => {
    await using t = await hookDesk();
    const id = await withDeliveries(t, "failed");
    {
      using writes = watchWrites(t.app);
      expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: MANY });
      expect(Math.max(...writes.changed)).toBeLessThan(MOST_AT_ONCE);
    }
    expect(await countOf(t, "pending")).toBe(MANY);
    const jobs = await t.app.db
      .selectFrom("jobs")
      .select("kind")
      .where("kind", "=", "deliver_webhooks")
      .execute();
    expect(jobs).toHaveLength(1);
  });

  test("that fail again meanwhile are not sent once more", async () => {
    await using t = await hookDesk({ webhooks: { allow: ["127.0.0.1"], backoff: [0] } });
    const id = await withDeliveries(t, "failed");
    const { write } = t.app;
    t.app.write = (operation) =>
      write(async (tx) => {
        const result = await operation(tx);
        await tx.updateTable("webhook_deliveries").set({ status: "failed", next_attempt_at: null }).execute();
        return result;
      });
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: MANY });
  });

  test("have failed by the answer that switches it off, some at a time", async () => {
    await using t = await hookDesk();
    const id = await withDeliveries(t, "pending");
    {
      using writes = watchWrites(t.app);
      const { body } = await t.ada.patch(`/v1/webhooks/${id}`, { enabled: false });
      expect(body.enabled).toBe(false);
      expect(Math.max(...writes.changed)).toBeLessThan(MOST_AT_ONCE);
    }
    expect(await countOf(t, "failed")).toBe(MANY);
  });

  test("are failed by their job where the server ended before they were", async () => {
    await using t = await hookDesk();
    const id = await withDeliveries(t, "pending");
    const { write } = t.app;
    let writes = 0;
    t.app.write = (operation) => (writes++ === 0 ? write(operation) : Promise.reject(new Error("ended")));
    expect((await t.ada.patch(`/v1/webhooks/${id}`, { enabled: false })).status).toBe(500);
    t.app.write = write;
    expect(await countOf(t, "pending")).toBeGreaterThan(0);
    await t.drain();
    expect(await countOf(t, "failed")).toBe(MANY);
    expect(t.received).toHaveLength(1);
  });

  test("are shown at a new address without being changed", async () => {
    await using t = await hookDesk();
    const id = await withDeliveries(t, "pending");
    const url = `${t.hook_url}/2`;
    {
      using writes = watchWrites(t.app);
      expect((await t.ada.patch(`/v1/webhooks/${id}`, { url })).status).toBe(200);
      expect(Math.max(...writes.changed)).toBeLessThan(10);
    }
    const { body } = await t.ada.get(`/v1/webhooks/${id}/deliveries`);
    expect(new Set(body.map((one: { url: string }) => one.url))).toEqual(new Set([url]));
  });
});

describe("an account for which much waits", () => {
  /** Messages, their jobs, and answers that the relay has put off. */
  async function busyRoom() {
    await using stack = new AsyncDisposableStack();
    const sink = stack.use(await startSmtpSink());
    const room = stack.use(
      await mailroom({
        config: { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } },
      }),
    );
    await room.send({ text: "Summarise this" });
    sink.fault = "refuse";
    await room.drain();
    const [mail] = await room.app.db.selectFrom("outgoing_mails").selectAll().execute();
    await room.owner.post("/v1/messages", { instruction: "Later", async: true });
    const jobs = await room.app.db.selectFrom("jobs").selectAll().execute();
    const [route, send] = ["route_message", "send_mail"].map((kind) => jobs.find((job) => job.kind === kind));
    const { message_id } = JSON.parse(route?.payload ?? "{}");
    const message = await room.app.db
      .selectFrom("messages")
      .selectAll()
      .where("id", "=", message_id)
      .executeTakeFirstOrThrow();
    if (!mail || !route || !send) throw new Error("nothing waits");
    for (let count = 0; count < MANY; count += 1) {
      const [id, outgoing_id] = [room.app.newId(), room.app.newId()];
      const copy = { ...message, id, dedupe_key: null, rfc_message_id: null };
      await room.app.db.insertInto("messages").values(copy).execute();
      await room.app.db
        .insertInto("outgoing_mails")
        .values({ ...mail, id: outgoing_id, message_id: id })
        .execute();
      const run_at = room.app.now();
      const works = [
        { ...route, id: room.app.newId(), payload: JSON.stringify({ message_id: id }), lane: null },
        { ...send, id: room.app.newId(), payload: JSON.stringify({ outgoing_id }), run_at },
      ];
      await room.app.db.insertInto("jobs").values(works).execute();
    }
    sink.fault = undefined;
    const built = stack.move();
    return { ...room, sink, [Symbol.asyncDispose]: () => built.disposeAsync() };
  }

  const remove = (room: TestApp & { owner: { key: string } }) =>
    room.request("/auth/account", {
      method: "DELETE",
      headers: { "x-api-key": room.owner.key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: "ada@example.com" }),
    });

  test("is dead at once in a short transaction, and nothing of it is done until it is erased", async () => {
    await using room = await busyRoom();
    await room.app.db.insertInto("held_kinds").values({ kind: "erase_account", since: 0 }).execute();
    const asked = room.model.requests.length;
    {
      using writes = watchWrites(room.app);
      expect((await remove(room)).status).toBe(204);
      expect(Math.max(...writes.changed)).toBeLessThan(3 * MOST_AT_ONCE);
    }
    const waiting = () => room.app.db.selectFrom("jobs").select("kind").execute();
    expect((await waiting()).length).toBeGreaterThan(MANY);
    await room.drain();
    // And the answer that was put off before.
    expect((await waiting()).map(({ kind }) => kind).toSorted()).toEqual(["erase_account", "send_mail"]);
    expect([room.model.requests.length, room.sink.mails.length]).toEqual([asked, 0]);
    await room.app.db.deleteFrom("held_kinds").execute();
    await room.drain();
    room.clock.advance("10m");
    await room.drain();
    expect(room.sink.mails).toHaveLength(1);
    expect(await room.app.db.selectFrom("users").select("id").execute()).toEqual([]);
  });

  test("has what waits taken away some at a time, before its owner is told", async () => {
    await using room = await busyRoom();
    await remove(room);
    for (const kind of ["route_message", "send_mail"] as const)
      await room.app.db.insertInto("held_kinds").values({ kind, since: 0 }).execute();
    using writes = watchWrites(room.app);
    await room.drain();
    expect(Math.max(...writes.changed)).toBeLessThan(3 * MOST_AT_ONCE);
    const jobs = await room.app.db.selectFrom("jobs").select("kind").execute();
    expect(jobs.map(({ kind }) => kind).toSorted()).toEqual(["erase_account", "send_mail"]);
    const mails = await room.app.db.selectFrom("outgoing_mails").select("id").execute();
    expect(mails).toHaveLength(1);
  });
});
