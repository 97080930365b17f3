import { describe, expect, test } from "bun:test";
import { planAllDue } from "../../src/resources/schedules/plan.ts";
import { timesAfter } from "../../src/resources/schedules/times.ts";
import { purge } from "../support/purge.ts";
import { answer, lastAnswer, leapForGood, pass, roomAt, schedules } from "./room.ts";

describe("the times of a schedule", () => {
  test("that begins a second late are each hour all the same", async () => {
    await using room = await roomAt();
    await room.send({ text: "--every=hourly\nSay hello." });
    await room.drain();
    await pass(room, "1s");
    for (let hour = 0; hour < 8; hour += 1) await pass(room, "1h");
    expect(room.model.requests).toHaveLength(8);
  });

  test("do not come twice when the clock is set back by minutes", async () => {
    await using room = await roomAt();
    await room.send({ text: '--every="daily 9:00"\nSay hello.' });
    await room.drain();
    await pass(room, "1h");
    await pass(room, "2m");
    room.clock.leap("-5m");
    await room.app.write((tx) => planAllDue(room.app, tx));
    await room.drain();
    await pass(room, "5m");
    await pass(room, "5m");
    expect(room.model.requests).toHaveLength(1);
    await pass(room, "24h");
    expect(room.model.requests).toHaveLength(2);
  });

  test("stay due when its title is changed meanwhile", async () => {
    await using room = await roomAt();
    const make = async (times: object) =>
      (await room.owner.post("/v1/schedules", { instruction: "Hello.", ...times })).body.id;
    const once = await make({ at: "2026-07-15 09:00" });
    const daily = await make({ every: "daily 9:00" });
    // The worker has not come to them yet.
    room.clock.advance("61m");
    for (const id of [once, daily])
      expect((await room.owner.patch(`/v1/schedules/${id}`, { title: "Another" })).status).toBe(200);
    await room.drain();
    expect(room.model.requests).toHaveLength(2);
    expect((await schedules(room)).map(({ title }: { title: string }) => title)).toEqual([
      "Another",
      "Another",
    ]);
  });
});

test("a clock that was ahead by a year for a while ends no schedule", async () => {
  await using room = await roomAt();
  const make = (times: object) => room.owner.post("/v1/schedules", { instruction: "Hello.", ...times });
  await make({ at: "2026-12-24 09:00", title: "Once" });
  await make({ every: "daily 9:00", until: "2026-12-31", title: "Daily" });
  await make({ every: "daily 9:00", title: "Stopped" });
  await leapForGood(room, "400d");
  expect(room.model.requests.length).toBeGreaterThan(0);
  const stopped = (await schedules(room)).find(({ title }: { title: string }) => title === "Stopped");
  expect((await room.owner.patch(`/v1/schedules/${stopped.id}`, { paused: true })).status).toBe(200);
  await leapForGood(room, "-400d");
  // What the limit of requests has counted by the clock that was ahead is over a minute after the first of them.
  await room.owner.get("/v1/schedules");
  await pass(room, "1m");
  const states = (await schedules(room)).map(({ title, status, next_times: [next] }: Shown) => [
    title,
    status,
    next === undefined ? null : new Date(next * 1_000).toISOString().slice(0, 10),
  ]);
  expect(states.toSorted()).toEqual([
    ["Daily", "active", "2026-07-16"],
    ["Once", "active", "2026-12-24"],
    ["Stopped", "paused", null],
  ]);
});

test("a test of an inbox makes none, as it is free", async () => {
  await using room = await roomAt();
  const { body } = await room.owner.post(`/inboxes/${room.inbox.id}/test`, {
    instruction: "--every=hourly\nWrite a poem.",
  });
  expect([body.status, body.error]).toEqual([
    "failed",
    expect.stringContaining("A test makes nothing that lasts."),
  ]);
  expect(await schedules(room)).toEqual([]);
});

interface Shown {
  title: string;
  status: string;
  next_times: number[];
}

test.each([{ pattern: "x 9 * * *" }, { timezone: "Mars/Olympus" }])(
  "damaged times of one (%j) keep nobody from a start, are told of, and can be given anew",
  async (damaged) => {
    await using room = await roomAt();
    for (const title of ["Damaged", "Whole"])
      await room.owner.post("/v1/schedules", { instruction: "Hello.", every: "daily 9:00", title });
    const named = async (title: string) =>
      (await schedules(room)).find((shown: Shown) => shown.title === title);
    const { id } = await named("Damaged");
    await room.app.db.updateTable("schedules").set(damaged).where("id", "=", id).execute();
    await room.app.write((tx) => planAllDue(room.app, tx));
    expect(await named("Damaged")).toMatchObject({ status: "active", next_times: [] });
    await pass(room, "24h");
    await pass(room, "24h");
    expect(room.model.requests).toHaveLength(2);
    expect(await named("Whole")).toMatchObject({ status: "active" });
    expect(await named("Damaged")).toMatchObject({
      status: "paused",
      reason: expect.stringContaining("the database is damaged there"),
    });
    const subjects = (await room.outgoing()).map(
      ({ raw }) => /^Subject: (.*)\r$/m.exec(Buffer.from(raw ?? "").toString())?.[1],
    );
    expect(subjects).toContain("A schedule of yours has been paused");
    const anew = { every: "daily 9:00", timezone: "UTC" };
    expect((await room.owner.patch(`/v1/schedules/${id}`, anew)).body.status).toBe("active");
    await pass(room, "24h");
    expect(room.model.requests).toHaveLength(4);
  },
);

test("one in the middle of whose job the server has ended 15 times pauses, and its owner is told", async () => {
  await using room = await roomAt();
  await room.owner.post("/v1/schedules", { instruction: "Hello.", every: "daily 9:00" });
  await room.app.db.updateTable("jobs").set({ attempts: 15 }).where("kind", "=", "run_schedule").execute();
  await pass(room, "24h");
  await pass(room, "1h");
  expect(await schedules(room)).toMatchObject([
    { status: "paused", reason: expect.stringContaining("The server ended 15 times in the middle of it.") },
  ]);
  expect((await lastAnswer(room)).subject).toBe("A schedule of yours has been paused");
});

describe("a schedule without its mail", () => {
  test("that has ended is given no other times, and says why", async () => {
    await using room = await roomAt();
    await room.send({ subject: "Call", text: '--at="tomorrow 9:00"\nRemind me.' });
    await room.drain();
    const made = await lastAnswer(room);
    await pass(room, "25h");
    for (let day = 0; day < 12; day += 1) await pass(room, "1d");
    await purge(room);
    const [{ id, status }] = await schedules(room);
    expect(status).toBe("ended");
    const refused = await room.owner.patch(`/v1/schedules/${id}`, { every: "daily 9:00" });
    expect([refused.status, refused.body.detail, refused.body.fix]).toEqual([
      409,
      "What this message was about has been deleted, as it is kept for a limited time only.",
      "Send it again.",
    ]);
    await answer(room, "--every=daily", {}, made);
    expect((await lastAnswer(room)).text).toContain("Send it again.");
    expect(await schedules(room)).toMatchObject([{ status: "ended" }]);
    const renewed = await room.owner.patch(`/v1/schedules/${id}`, {
      every: "daily 9:00",
      instruction: "Say hello.",
    });
    expect(renewed.body.status).toBe("active");
    const before = room.model.requests.length;
    await pass(room, "1d");
    expect(room.model.requests.length).toBe(before + 1);
  });

  test("pauses, and its owner is told, where the disk has lost it", async () => {
    await using room = await roomAt();
    await room.send({ text: "--every=daily\nSay hello." });
    await room.drain();
    await room.app.db.updateTable("raw_mails").set({ lost_at: room.app.now() }).execute();
    await pass(room, "1d");
    await pass(room, "1h");
    expect(await schedules(room)).toMatchObject([{ status: "paused", reason: expect.stringMatching(/\S/) }]);
    expect((await lastAnswer(room)).subject).toContain("schedule");
  });
});

describe("what a schedule counts", () => {
  test("an answer with new times revives no more of them than the plan allows", async () => {
    await using room = await roomAt({ config: { plans: { team: { schedules: 1 } } } });
    await room.send({ subject: "One", text: "--every=daily\nSay hello." });
    await room.drain();
    const first = await lastAnswer(room);
    await answer(room, "stop", {}, first);
    await room.send({ subject: "Two", text: "--every=daily\nSay goodbye." });
    await room.drain();
    await answer(room, "--every=hourly", {}, first);
    const states = (await schedules(room)).map(({ status }: { status: string }) => status).toSorted();
    expect(states).toEqual(["active", "ended"]);
  });

  test("a run that is cancelled or tried again is no further failure", async () => {
    await using room = await roomAt({ model: { reply: () => new Response("no", { status: 400 }) } });
    await room.send({ text: "--every=daily\nSay hello." });
    await room.drain();
    await pass(room, "1d");
    const { id } = await room.newest();
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await room.owner.post(`/messages/${id}/retry`)).status).toBe(202);
      await room.drain();
    }
    expect(await schedules(room)).toMatchObject([{ status: "active" }]);
    await pass(room, "1d");
    await pass(room, "1d");
    expect(await schedules(room)).toMatchObject([{ status: "paused" }]);
  });

  test("the word stop ends the one of a conversation that still runs", async () => {
    await using room = await roomAt();
    await room.send({ subject: "One", text: "--every=daily\nSay hello." });
    await room.drain();
    const first = await lastAnswer(room);
    await answer(room, '--every="daily 18:00"\nSay goodbye.', {}, first);
    await answer(room, "stop", {}, first);
    await answer(room, "stop", {}, first);
    expect((await schedules(room)).map(({ status }: { status: string }) => status)).toEqual([
      "ended",
      "ended",
    ]);
  });
});

test("times that were worked out are known: a list of hundreds of schedules holds up nobody twice", () => {
  const all = Array.from({ length: 200 }, (_none, nth) => ({
    pattern: `${nth % 60} ${nth % 24} 29 2 *`,
    at: null,
    timezone: "America/New_York",
    until: null,
  }));
  const from = Date.UTC(2026, 6, 15, 8) / 1_000 + 1;
  const list = () => all.map((times) => timesAfter(times, from, 3));
  const first = list();
  const began = performance.now();
  expect(list()).toEqual(first);
  expect(performance.now() - began).toBeLessThan(20);
  first[0]?.pop();
  expect(list()[0]).toHaveLength(3);
});
