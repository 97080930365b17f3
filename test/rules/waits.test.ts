import { describe, expect, test } from "bun:test";
import { planAtStart, watchClock } from "../../src/jobs/clock.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import type { Job } from "../../src/jobs/queue.ts";
import { waitForTime } from "../../src/jobs/waits.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";

const NIGHT = { name: "Night", when: [], do: { wait: { until: "08:00", days: ["mon"], zone: "UTC" } } };

async function waitingRoom(rule: object = NIGHT, more: RoomOptions = {}): Promise<Mailroom> {
  const room = await mailroom(more);
  await setRules(room, [rule]);
  return room;
}

async function setRules(room: Mailroom, rules: object[]): Promise<void> {
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules })).status).toBe(200);
}

async function sendWaiting(room: Mailroom) {
  await room.send({ text: "Say hello" });
  await room.drain();
  const row = await room.newest();
  expect(row.state).toBe("received");
  return row;
}

describe("a message that a rule has wait", () => {
  test("says which rule, until when, and when it is worth asking again", async () => {
    await using room = await waitingRoom();
    const { id } = await sendWaiting(room);
    const poll = await room.owner.get(`/v1/messages/${id}`);
    const { status, waits_until } = poll.body;
    expect([status, typeof waits_until]).toEqual(["processing", "number"]);
    expect(poll.body.steps.at(-1).output).toMatch(/^The rule “Night” has it wait until Monday, .*08:00/);
    expect(Number(poll.headers.get("retry-after"))).toBe(waits_until - room.app.now());
    const story = (await room.owner.get(`/messages/${id}`)).body;
    expect([story.waits_until, story.may_retry]).toEqual([waits_until, "now"]);
    expect((await room.activity())[0]).toMatchObject({ waits_until, may_retry: "now" });
  });

  test("says how much of its time it waited, which is no work", async () => {
    await using room = await waitingRoom();
    const { id } = await sendWaiting(room);
    const story = async () => (await room.owner.get(`/messages/${id}`)).body;
    expect((await story()).waited_ms).toBe(null);
    room.clock.advance("5h");
    await room.owner.post(`/messages/${id}/retry`);
    await room.drain();
    const hours = 5 * 3_600_000;
    const { waited_ms, duration_ms, status } = await story();
    expect(status).toBe("done");
    expect(waited_ms).toBeGreaterThanOrEqual(hours);
    expect(duration_ms).toBeGreaterThanOrEqual(waited_ms);
    expect(duration_ms - waited_ms).toBeLessThan(60_000);
    await room.send({ text: "Say hello again", headers: { "Message-ID": "<second@x>" } });
    await room.drain();
    const second = await room.newest();
    room.clock.advance("8d");
    await room.drain();
    const ended = (await room.owner.get(`/messages/${second.id}`)).body;
    expect([ended.status, ended.waited_ms >= 8 * 24 * 3_600_000]).toEqual(["done", true]);
  });

  test("is begun at once when it is tried again, and does not wait a second time", async () => {
    await using room = await waitingRoom();
    const { id } = await sendWaiting(room);
    const again = await room.owner.post(`/messages/${id}/retry`);
    expect([again.status, again.body.message_id, again.body.waits_until]).toEqual([202, id, undefined]);
    expect((await room.activity())[0]).toMatchObject({ waits_until: null, may_retry: null });
    await room.drain();
    expect(await room.newest()).toMatchObject({ id, state: "done" });
    expect((await room.activity())[0].rules).toEqual(["Night"]);
  });

  test("is begun at once when the operator has its job tried again", async () => {
    await using room = await waitingRoom(NIGHT);
    await sendWaiting(room);
    await room.drain();
    const { items } = (await room.owner.get("/admin/queue")).body;
    const job = items.find(({ kind }: { kind: string }) => kind === "route_message");
    expect((await room.owner.post(`/admin/queue/${job.id}/retry`)).status).toBe(204);
    await room.drain();
    expect((await room.newest()).state).toBe("done");
  });

  test("goes on when its rule is taken away, and is looked at anew when that changes", async () => {
    await using room = await waitingRoom();
    const { id } = await sendWaiting(room);
    await setRules(room, [{ ...NIGHT, do: { wait: { until: "13:00", zone: "UTC" } } }]);
    await room.drain();
    const story = (await room.owner.get(`/messages/${id}`)).body;
    expect(new Date(story.waits_until * 1_000).toISOString()).toContain("T13:00:00");
    await setRules(room, []);
    await room.drain();
    expect(await room.newest()).toMatchObject({ id, state: "done" });
  });

  test.each(["once", "twice"])(
    "is looked at with a thousand others, some at a time and each of them, when the rules change %s",
    async (times) => {
      await using room = await waitingRoom();
      const { id } = await sendWaiting(room);
      const jobs = () => room.app.db.selectFrom("jobs").selectAll().where("kind", "=", "route_message");
      const [job] = await jobs().execute();
      if (job?.dedupe_key == null) throw new Error("there is no job that waits");
      const others = Array.from({ length: 1_000 }, () => Bun.randomUUIDv7());
      const copies = others.map((message_id) => ({
        ...job,
        id: room.app.newId(),
        payload: JSON.stringify({ message_id }),
        dedupe_key: job.dedupe_key?.replace(id, message_id) ?? null,
      }));
      while (copies.length > 0) await room.app.db.insertInto("jobs").values(copies.splice(0, 50)).execute();
      let seen: string[] = [];
      let left = times === "twice" ? 1 : 0;
      const change = async () => {
        seen = [];
        await setRules(room, [{ ...NIGHT, name: `Night ${left}` }]);
      };
      await change();
      const due = await jobs().where("run_at", "<=", room.app.now()).execute();
      expect(due.length).toBeLessThan(200);
      const run = async (_: unknown, looked: Job<"route_message">) => {
        if (seen.length === 600 && left > 0) {
          left -= 1;
          await change();
        }
        seen.push(looked.payload.message_id);
        const until = room.app.now() + 86_400;
        await room.app.write((tx) => waitForTime(tx, looked, { inbox_id: room.inbox.id, until }));
      };
      const route_message = { run, slots: 4 };
      await using worker = createWorker(room.app, { ...jobHandlers(room.app), route_message });
      await worker.drain();
      expect([id, ...others].filter((one) => !seen.includes(one))).toEqual([]);
      if (times === "once") expect(seen).toHaveLength(1_001);
      expect(await jobs().where("run_at", "<=", room.app.now()).execute()).toEqual([]);
    },
  );

  test("ends when its inbox is deleted", async () => {
    await using room = await waitingRoom();
    await sendWaiting(room);
    expect((await room.owner.delete(`/inboxes/${room.inbox.id}`)).status).toBe(204);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "inbox_deleted" });
  });

  test("holds up nothing else of its conversation", async () => {
    const rule = { ...NIGHT, when: [{ field: "subject", contains: ["later"] }] };
    await using room = await waitingRoom(rule);
    await room.send({ text: "Say hello", subject: "later", headers: { "Message-ID": "<one@example.com>" } });
    await room.drain();
    const { conversation_id } = await room.newest();
    const call = await room.owner.post("/v1/messages", {
      instruction: "Now",
      conversation_id,
      inbox_id: room.inbox.id,
      async: true,
    });
    await room.drain();
    expect((await room.owner.get(`/v1/messages/${call.body.message_id}`)).body.status).toBe("done");
    room.clock.advance("8d");
    await room.drain();
    const states = await room.app.db.selectFrom("messages").select(["state", "conversation_id"]).execute();
    expect(states).toEqual([
      { state: "done", conversation_id },
      { state: "done", conversation_id },
    ]);
  });

  test("is said to wait to whoever called, at once", async () => {
    await using room = await waitingRoom(NIGHT, { config: { routing: { sync_budget_seconds: 50 } } });
    const call = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect([call.status, call.body.status]).toEqual([202, "processing"]);
    expect(call.body.steps.at(-1).output).toContain("The rule “Night” has it wait until");
    expect(Number(call.headers.get("retry-after"))).toBeGreaterThan(1_000);
    const tested = await room.owner.post(`/inboxes/${room.inbox.id}/test`, {});
    expect(tested.body).toMatchObject({ status: "processing", waits_until: expect.any(Number) });
  });

  test("does not wait where it came in the very minute", async () => {
    await using room = await mailroom();
    const until = new Date(room.clock.now()).toISOString().slice(11, 16);
    await setRules(room, [{ name: "Now", when: [], do: { wait: { until, zone: "UTC" } } }]);
    await room.send({ text: "Say hello" });
    await room.drain();
    expect((await room.newest()).state).toBe("done");
  });

  for (const ahead of ["400d", "20h"])
    test(`is freed when the clock that was ${ahead} ahead when it came is set back`, async () => {
      await using room = await waitingRoom({ ...NIGHT, do: { wait: { until: "13:00", zone: "UTC" } } });
      const handlers = jobHandlers(room.app);
      const look = watchClock(room.app, handlers);
      room.clock.leap(ahead);
      await look();
      await sendWaiting(room);
      room.clock.leap(`-${ahead}`);
      await look();
      await room.app.write((tx) => planAtStart(room.app, tx, handlers));
      await room.drain();
      room.clock.advance("25h");
      await room.drain();
      expect((await room.newest()).state).toBe("done");
    });
});
