import { describe, expect, test } from "bun:test";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { enqueue, finishJob, voidLeases } from "../../src/jobs/queue.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import type { JobHandlers } from "../../src/jobs/run-job.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { testApp, setWorker } from "../support/app.ts";
import { finish, gate, type Run, setUp } from "./work-room.ts";
import { until } from "../support/until.ts";

type Room = Awaited<ReturnType<typeof setUp>>;

/** Longer than any test. */
const NEVER = 1e6;

/** Jobs that the process did not outlive so many times. */
async function addSuspects(t: Room, names: string[], unended: number): Promise<void> {
  for (const name of names) await t.add({}, name);
  await t.app.db
    .updateTable("jobs")
    .set({ attempts: unended })
    .where("kind", "=", "route_message")
    .where("attempts", "=", 0)
    .execute();
}

async function untilRunning(t: Room, count: number): Promise<void> {
  const running = async () => (await t.jobs()).filter(({ status }) => status === "running").length;
  await until(async () => (await running()) === count);
}

function named(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${n}`);
}

describe("jobs in the middle of which the server was killed 5 times", () => {
  test("are begun one, then two, then four at once and so on, as they end; others do not wait for them", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 64, watch_ms: NEVER });
    await addSuspects(t, named(7), 5);
    await t.add({}, "new");
    t.worker.start();
    await g.count(2);
    await untilRunning(t, 2);
    expect(g.begun).toEqual(["0", "new"]);
    g.open();
    g.open();
    await g.count(4);
    await untilRunning(t, 2);
    expect(g.begun.slice(2)).toEqual(["1", "2"]);
    g.open();
    g.open();
    await g.count(8);
    expect(g.begun.slice(4).toSorted()).toEqual(["3", "4", "5", "6"]);
    await until(async () => !(g.open() !== undefined || (await t.jobs()).length > 0));
  });

  test("need not end for it where they only wait: they are all begun once each has outlived its watch", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 64, watch_ms: 1 });
    await addSuspects(t, named(40), 5);
    t.worker.start();
    await g.count(40);
    for (const _ of named(40)) g.open();
  });

  test("wait as pending jobs, for which no slot is kept, and which are not counted", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 2, watch_ms: NEVER });
    await addSuspects(t, ["one", "two"], 5);
    t.worker.start();
    await g.count(1);
    await untilRunning(t, 1);
    await t.add({}, "new");
    await g.count(2);
    expect(g.begun).toEqual(["one", "new"]);
    const waits = "The server ended 5 times in the middle of it: others like it are tried first";
    expect(await t.jobs()).toMatchObject([
      { status: "running", attempts: 6 },
      { status: "pending", attempts: 5, last_error: waits },
      { status: "running", attempts: 1 },
    ]);
    expect((await queueWarnings(t.app))["suspects"]).toStartWith("1 job waits while others are tried");
    g.open();
    g.open();
    await g.count(3);
    expect(await queueWarnings(t.app)).toEqual({});
    g.open();
  });
});

test("what is watched for longer, because it was begun more often, holds up none that is watched less", async () => {
  const g = gate();
  await using t = await setUp({ route: g.run, slots: 8, watch_ms: NEVER });
  for (const unended of [9, 7, 5]) await addSuspects(t, [`${unended}`], unended);
  t.worker.start();
  await g.count(3);
  expect(g.begun).toEqual(["9", "7", "5"]);
  for (const _ of g.begun) g.open();
});

describe("jobs in the middle of which the server was killed 10 times", () => {
  test("are begun one at a time, each as soon as the one before it has ended, and only that one is counted", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 8, watch_ms: 1 });
    await addSuspects(t, ["one", "two", "three"], 10);
    await t.add({}, "new");
    t.worker.start();
    await g.count(2);
    await untilRunning(t, 2);
    expect(g.begun).toEqual(["one", "new"]);
    expect(await t.jobs()).toMatchObject([
      { status: "running", attempts: 11 },
      { status: "pending", attempts: 10 },
      { status: "pending", attempts: 10 },
      { status: "running", attempts: 1 },
    ]);
    g.open();
    g.open();
    for (const name of ["two", "three"]) {
      await g.count(g.begun.length + 1);
      expect(g.begun.at(-1)).toBe(name);
      g.open();
    }
  });

  test.each([5, 10])("hold up none of another kind, nor those of %p times", async (unended) => {
    const g = gate();
    const sent = Promise.withResolvers<void>();
    await using t = await setUp({
      route: g.run,
      watch_ms: NEVER,
      async send(app, job, signal) {
        await finish(app, job, signal);
        sent.resolve();
      },
    });
    await addSuspects(t, ["one"], 10);
    await t.addMail();
    await t.app.db.updateTable("jobs").set({ attempts: unended }).where("kind", "=", "send_mail").execute();
    await addSuspects(t, ["two"], 5);
    t.worker.start();
    await sent.promise;
    await g.count(2);
    g.open();
    g.open();
  });
});

/** Starts a server again and again over the same table until one outlives its jobs; `killers` end it in their middle. */
async function startUntilCalm(names: string[], killers: string[]) {
  await using t = await testApp();
  const given_up: string[] = [];
  const done: string[] = [];
  for (const message_id of names)
    await t.app.write((tx) => enqueue(t.app, tx, { kind: "route_message", payload: { message_id } }));
  /** Whether it died. */
  async function live(): Promise<boolean> {
    const end = Promise.withResolvers<boolean>();
    let dead = false;
    const endIfCalm = (): void => {
      if (done.length + given_up.length === names.length) end.resolve(false);
    };
    const run: Run = async (app, job) => {
      const name = job.payload.message_id;
      if (killers.includes(name)) {
        dead = true;
        end.resolve(true);
      }
      // Long enough for whoever is begun with it to be in hand as well.
      for (let turn = 0; turn < 3; turn += 1) await app.write(() => Promise.resolve());
      if (dead) await new Promise(() => undefined);
      await app.write((tx) => finishJob(tx, job));
      done.push(name);
      endIfCalm();
    };
    const giveUp: JobHandlers["route_message"]["giveUp"] = async (_app, _tx, job) => {
      given_up.push(job.payload.message_id);
      endIfCalm();
    };
    const others = Object.keys(JOB_RULES).map((kind) => [kind, { run: finish, slots: 1 }]);
    const handlers: JobHandlers = {
      ...(Object.fromEntries(others) as JobHandlers),
      route_message: { run, giveUp, slots: 64 },
    };
    const patience = { drain_ms: 0, abandon_ms: 0, word_ms: 0 };
    await using worker = createWorker(t.app, handlers, { patience, watch_ms: NEVER });
    setWorker(t.app, worker);
    worker.start();
    return await end.promise;
  }
  let deaths = 0;
  while (await live()) {
    deaths += 1;
    await t.app.write((tx) => voidLeases(tx));
    // Until those come again that waited.
    t.clock.advance("5s");
  }
  return { deaths, given_up, done };
}

describe("a job that ends the process each time", () => {
  test.each([0, 7, 39])(
    "is given up after 15 times, and none of the 39 that were in hand with it: it is the %p. of them",
    async (place) => {
      const names = named(40);
      const end = await startUntilCalm(names, [`${place}`]);
      expect(end.given_up).toEqual([`${place}`]);
      expect(end.deaths).toBe(15);
      expect(end.done.toSorted()).toEqual(names.filter((name) => name !== `${place}`).toSorted());
    },
    60_000,
  );

  test("is found where there are several", async () => {
    const names = named(20);
    const killers = ["3", "11", "12"];
    const end = await startUntilCalm(names, killers);
    expect(end.given_up.toSorted()).toEqual(killers.toSorted());
    expect(end.done.toSorted()).toEqual(names.filter((name) => !killers.includes(name)).toSorted());
  }, 60_000);
});
