import { describe, expect, test } from "bun:test";
import { messageOf } from "../../src/errors.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import { deferJob, enqueue, finishJob, type Job, postponeJob } from "../../src/jobs/queue.ts";
import type { JobWorker } from "../../src/jobs/worker.ts";
import { startClock } from "../support/own-time.ts";
import { finish, gate, setUp, use } from "./work-room.ts";

async function stopped(worker: JobWorker): Promise<void> {
  await worker[Symbol.asyncDispose]();
}

describe("waking up", () => {
  test("a job runs well within 100 ms of its commit, with no timer due", async () => {
    const ran = Promise.withResolvers<void>();
    await using t = await setUp({
      async route(app, job, signal) {
        await finish(app, job, signal);
        ran.resolve();
      },
    });
    t.worker.start();
    // Both pools have looked and gone to sleep for as long as they do.
    await t.app.write(() => Promise.resolve());
    await t.app.write(() => Promise.resolve());
    await t.add();
    using clock = startClock();
    await ran.promise;
    expect(clock.ms()).toBeLessThan(100);
  });

  test("a job that a rolled back transaction enqueued never runs", async () => {
    const seen: Job[] = [];
    await using t = await setUp({ route: async (_, job) => void seen.push(job) });
    t.worker.start();
    const undone = t.app.write(async (tx) => {
      await enqueue(t.app, tx, { kind: "route_message", payload: { message_id: "m" } });
      throw new Error("no");
    });
    expect(await undone.catch(messageOf)).toBe("no");
    await t.worker.drain();
    expect(seen).toEqual([]);
    expect(await t.jobs()).toEqual([]);
  });

  test("no wake-up is lost among many that come at once", async () => {
    let ran = 0;
    const all = Promise.withResolvers<void>();
    await using t = await setUp({
      slots: 3,
      async route(app, job, signal) {
        await finish(app, job, signal);
        ran += 1;
        if (ran === 300) all.resolve();
      },
    });
    t.worker.start();
    for (let round = 0; round < 30; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => t.add()));
    }
    await all.promise;
    expect(await t.jobs()).toEqual([]);
  });

  test("a job for later waits for its time and runs then", async () => {
    let ran = 0;
    await using t = await setUp({
      async route(app, job, signal) {
        await finish(app, job, signal);
        ran += 1;
      },
    });
    await t.add({ run_at: t.app.now() + 60 });
    await t.drain();
    await t.worker.drain();
    expect(ran).toBe(0);
    t.clock.advance("1m");
    await t.worker.drain();
    expect(ran).toBe(1);
  });

  test("jobs that wait for their lane do not keep the worker busy", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run });
    let claims = 0;
    const { write } = t.app;
    t.app.write = (operation) => {
      claims += 1;
      return write(operation);
    };
    t.worker.start();
    await t.add({ lane: "thread" }, "first");
    await t.add({ lane: "thread" }, "second");
    await g.count(1);
    const before = claims;
    await Bun.sleep(100);
    expect(claims - before).toBeLessThan(4);
    expect(g.begun).toEqual(["first"]);
    g.open();
    await g.count(2);
    g.open();
    await t.worker.drain();
  });
});

describe("dedupe keys and lanes", () => {
  test("a second job with the same key is not added, until the first has ended", async () => {
    await using t = await setUp({});
    expect(await t.add({ dedupe_key: "daily" })).not.toBeNull();
    expect(await t.add({ dedupe_key: "daily" })).toBeNull();
    expect(await t.jobs()).toHaveLength(1);
    await t.worker.drain();
    expect(await t.add({ dedupe_key: "daily" })).not.toBeNull();
  });

  test("jobs of one lane run one at a time in order, while others run beside them", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run });
    for (const name of ["a1", "a2", "a3"]) await t.add({ lane: "a" }, name);
    await t.add({ lane: "b" }, "b1");
    await t.add({}, "alone");
    t.worker.start();
    await g.count(3);
    expect(g.begun).toEqual(["a1", "b1", "alone"]);
    g.open();
    await g.count(4);
    expect(g.begun[3]).toBe("a2");
    g.open();
    g.open();
    g.open();
    await g.count(5);
    expect(g.begun[4]).toBe("a3");
    g.open();
    await t.worker.drain();
    expect(await t.jobs()).toEqual([]);
  });
});

describe("slots", () => {
  test("never run more jobs of a kind than there are slots, reserved ones included", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 2 });
    t.worker.start();
    const reserved = t.worker.reserve("route_message", use(null));
    for (const name of ["1", "2", "3"]) await t.add({}, name);
    await g.count(1);
    expect(reserved).toBe(true);
    expect(t.worker.reserve("route_message", use(null))).toBe(false);
    expect(g.begun).toEqual(["1"]);
    t.worker.release("route_message", use(null));
    await g.count(2);
    expect(g.begun).toEqual(["1", "2"]);
    for (const _ of [1, 2, 3]) g.open();
    await g.count(3);
    g.open();
    await t.worker.drain();
  });

  test("a hung kind does not hold up another", async () => {
    const g = gate();
    const sent = Promise.withResolvers<void>();
    await using t = await setUp({
      route: g.run,
      slots: 2,
      async send(app, job, signal) {
        await finish(app, job, signal);
        sent.resolve();
      },
    });
    t.worker.start();
    for (let index = 0; index < 5; index += 1) await t.add();
    await g.count(2);
    await t.addMail();
    await sent.promise;
    expect(g.begun).toHaveLength(2);
    for (let index = 1; index <= 5; index += 1) {
      await g.count(index);
      g.open();
    }
    await t.worker.drain();
  });

  test("a claim whose commit fails gives its slots back", async () => {
    let ran = 0;
    await using t = await setUp({
      slots: 1,
      async route(app, job, signal) {
        await finish(app, job, signal);
        ran += 1;
      },
    });
    await t.add();
    const { write } = t.app;
    t.app.write = async (operation) => {
      await write(async (tx) => {
        await operation(tx);
        throw new Error("commit failed");
      });
      throw new Error("not reached");
    };
    for (let index = 0; index < 3; index += 1) await t.worker.drain();
    expect(ran).toBe(0);
    t.app.write = write;
    await t.worker.drain();
    expect(ran).toBe(1);
    expect(t.worker.reserve("route_message", use(null))).toBe(true);
    t.worker.release("route_message", use(null));
  });
});

describe("failures", () => {
  test("a job that fails waits longer each time and keeps its last error", async () => {
    await using t = await setUp({ route: () => Promise.reject(new Error("the model is away")) });
    await t.add();
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      await t.worker.drain();
      const [job] = await t.jobs();
      expect(job).toMatchObject({
        status: "pending",
        attempts: attempt,
        failures: attempt,
        last_error: "the model is away",
      });
      waits.push((job?.run_at ?? 0) - t.app.now());
      t.clock.advance(`${waits.at(-1)}s`);
    }
    expect(waits).toEqual([2, 4, 8, 16]);
  });

  test("one that fails every time is kept as dead with its error, its meaning told, and blocks nobody", async () => {
    const told: string[] = [];
    const names: string[] = [];
    await using t = await setUp({
      async route(app, job, signal) {
        names.push(job.payload.message_id);
        if (job.payload.message_id === "bad") throw new Error("never works");
        await finish(app, job, signal);
      },
      giveUp: async (_app, _tx, job, error) => void told.push(`${job.payload.message_id}: ${error}`),
    });
    await t.add({ lane: "thread", dedupe_key: "only" }, "bad");
    await t.add({ lane: "thread" }, "good");
    for (let round = 0; round < JOB_RULES.route_message.max_failures; round += 1) {
      expect(names).not.toContain("good");
      await t.worker.drain();
      t.clock.advance("1h");
    }
    expect(told).toEqual(["bad: never works"]);
    expect(names.filter((name) => name === "bad")).toHaveLength(JOB_RULES.route_message.max_failures);
    expect(names.at(-1)).toBe("good");
    expect(await t.jobs()).toMatchObject([{ status: "dead", last_error: "never works", lane: null }]);
    expect(await t.add({ dedupe_key: "only" })).not.toBeNull();
  });

  test("one whose end cannot be recorded, as a row that this needs is damaged, is dead all the same, and says both", async () => {
    await using t = await setUp({
      route: () => Promise.reject(new Error("never works")),
      async giveUp(_app, tx, { id }) {
        await tx.updateTable("jobs").set({ account: "half done" }).where("id", "=", id).execute();
        throw new Error("FOREIGN KEY constraint failed");
      },
    });
    await t.add();
    await t.app.db
      .updateTable("jobs")
      .set({ failures: JOB_RULES.route_message.max_failures - 1 })
      .execute();
    await t.worker.drain();
    const last_error = expect.stringMatching(/^never works\..*FOREIGN KEY constraint failed$/);
    expect(await t.jobs()).toMatchObject([{ status: "dead", account: null, last_error }]);
  });

  test("one in the middle of which the server was killed 15 times is given up, and not before", async () => {
    const told: string[] = [];
    await using t = await setUp({
      route: () => Promise.reject(new Error("a mistake")),
      giveUp: async (_app, _tx, _job, error) => void told.push(error),
    });
    await t.add();
    await t.app.db.updateTable("jobs").set({ attempts: 14 }).execute();
    await t.worker.drain();
    expect(await t.jobs()).toMatchObject([{ status: "pending", last_error: "a mistake" }]);
    t.clock.advance("1m");
    // One of the 17 times it was begun, it failed.
    await t.app.db.updateTable("jobs").set({ attempts: 16 }).execute();
    await t.worker.drain();
    expect(told).toEqual(["The server ended 15 times in the middle of it"]);
    expect(await t.jobs()).toMatchObject([{ status: "dead" }]);
  });

  test("one that its handler postpones runs again at the time it said, and not before", async () => {
    let runs = 0;
    await using t = await setUp({
      async route(app, job, signal) {
        runs += 1;
        if (job.failures > 0) return finish(app, job, signal);
        await app.write((tx) => postponeJob(tx, job, { run_at: app.now() + 300, error: "not now" }));
      },
    });
    await t.add();
    await t.worker.drain();
    t.clock.advance("299s");
    await t.worker.drain();
    expect(runs).toBe(1);
    expect(await t.jobs()).toMatchObject([{ status: "pending", failures: 1, last_error: "not now" }]);
    t.clock.advance("1s");
    await t.worker.drain();
    expect(runs).toBe(2);
    expect(await t.jobs()).toEqual([]);
  });
});

describe("a job that has more to do", () => {
  test("is not given up for errors before, however many they were in all", async () => {
    let runs = 0;
    await using t = await setUp({
      async route(app, job) {
        runs += 1;
        if (runs % 2 === 1) throw new Error("once more");
        await app.write((tx) => deferJob(tx, job, app.now() + 60));
      },
    });
    await t.add({ lane: "thread", dedupe_key: "only", share: { account: "ada", slots: 1 } });
    for (let round = 1; round <= 50; round += 1) {
      await t.worker.drain();
      t.clock.advance("1m");
    }
    expect(runs).toBe(50);
    expect(await t.jobs()).toMatchObject([
      { status: "pending", attempts: 0, failures: 0, lane: "thread", dedupe_key: "only", account: "ada" },
    ]);
  });

  test("cannot be ended any more by whoever had it before", async () => {
    const held: Job[] = [];
    const late: unknown[] = [];
    await using t = await setUp({
      async route(app, job, signal) {
        const [before] = held;
        held.push(job);
        if (!before) return app.write((tx) => deferJob(tx, job, app.now()));
        late.push(await app.write((tx) => finishJob(tx, before)).catch((error: Error) => error.name));
        await finish(app, job, signal);
      },
    });
    await t.add();
    await t.worker.drain();
    expect(held).toHaveLength(2);
    expect(late).toEqual(["LeaseLostError"]);
    expect(await t.jobs()).toEqual([]);
  });
});

describe("stopping", () => {
  test("waits for the work in progress and claims nothing new", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 1 });
    t.worker.start();
    await t.add({}, "running");
    await g.count(1);
    await t.add({}, "waiting");
    const ended = stopped(t.worker);
    g.open();
    await ended;
    expect(g.begun).toEqual(["running"]);
    expect(await t.jobs()).toMatchObject([{ status: "pending", attempts: 0 }]);
  });

  test("waits longer for a job that waits for a word from outside, and for no other", async () => {
    const both = Promise.withResolvers<void>();
    let begun = 0;
    await using t = await setUp({
      patience: { drain_ms: 0, abandon_ms: 0, word_ms: 50_000 },
      async route(app, job, signal) {
        const told = Promise.withResolvers<void>();
        signal.addEventListener("abort", () => told.resolve());
        if (job.payload.message_id === "unsaid") app.worker?.waitForWord(job);
        begun += 1;
        if (begun === 2) both.resolve();
        await told.promise;
        if (job.payload.message_id !== "unsaid") await new Promise(() => undefined);
        // Longer than the stop waits for all others.
        for (let turn = 0; turn < 50; turn += 1) await app.write(() => Promise.resolve());
        await finish(app, job, signal);
      },
    });
    t.worker.start();
    await t.add({}, "unsaid");
    await t.add({}, "other");
    await both.promise;
    await stopped(t.worker);
    expect(await t.jobs()).toMatchObject([{ status: "running", payload: '{"message_id":"other"}' }]);
  });

  test("waits no longer than that for it", async () => {
    const begun = Promise.withResolvers<void>();
    await using t = await setUp({
      patience: { drain_ms: 0, abandon_ms: 0, word_ms: 0 },
      async route(app, job) {
        app.worker?.waitForWord(job);
        begun.resolve();
        await new Promise(() => undefined);
      },
    });
    t.worker.start();
    await t.add();
    await begun.promise;
    await stopped(t.worker);
    expect(await t.jobs()).toMatchObject([{ status: "running" }]);
  });

  test("takes no slot any more once it has begun", async () => {
    await using t = await setUp({});
    t.worker.start();
    await stopped(t.worker);
    expect(t.worker.reserve("route_message", use(null))).toBe(false);
    await t.add();
    t.worker.wake("route_message");
    await t.worker.drain();
    expect(await t.jobs()).toHaveLength(1);
  });

  test("drain runs what the jobs themselves make due", async () => {
    const order: string[] = [];
    await using t = await setUp({
      async route(app, job, signal) {
        order.push("route");
        await app.write((tx) => enqueue(app, tx, { kind: "send_mail", payload: { outgoing_id: "o" } }));
        await finish(app, job, signal);
      },
      async send(app, job, signal) {
        order.push("send");
        await finish(app, job, signal);
      },
    });
    await t.add();
    await t.worker.drain();
    expect(order).toEqual(["route", "send"]);
    expect(await t.jobs()).toEqual([]);
  });
});
