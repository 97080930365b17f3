import { describe, expect, test } from "bun:test";
import type { App } from "../../src/app.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import {
  enqueue,
  finishJob,
  type Job,
  LeaseLostError,
  postponeJob,
  voidLeases,
} from "../../src/jobs/queue.ts";
import { setWorker } from "../support/app.ts";
import { until } from "../support/until.ts";
import { finish, gate, setUp, use } from "./work-room.ts";

function mark(app: App, attempt: number) {
  return { address: `attempt ${attempt}`, retired_at: app.now() };
}

test("a slot that gets free is looked for work again where the end of its job was undone, and where others wait behind it", async () => {
  const begun: string[] = [];
  await using t = await setUp({
    route: async (app, job) => {
      const { message_id } = job.payload;
      begun.push(message_id);
      const end = app.write(async (tx) => {
        await finishJob(tx, job);
        if (message_id === "undone") throw new Error("This end is not written.");
      });
      if (message_id !== "undone") return end;
      await end.catch(() => undefined);
      await app.write((tx) => postponeJob(tx, job, { run_at: app.after(3_600), error: "later" }));
    },
    slots: 1,
  });
  /** As another process adds it, which tells nobody. */
  const addUnsaid = async (name: string, options: { lane?: string } = {}): Promise<void> => {
    const { worker } = t.app;
    setWorker(t.app, undefined);
    await t.add(options, name);
    setWorker(t.app, worker);
  };
  t.worker.start();
  await t.add({ lane: "one" }, "first");
  await until(() => begun.includes("first"));
  // Nothing is left, and the pool knows it.
  await until(async () => (await t.jobs()).length === 0);
  t.worker.reserve("route_message", use(null));
  const undone = (await t.add({ claimed: true }, "undone")) as Job;
  await addUnsaid("z");
  t.worker.run(undone);
  await until(() => begun.includes("z"));
  t.worker.reserve("route_message", use(null));
  const last = (await t.add({ claimed: true, lane: "two" }, "last")) as Job;
  await addUnsaid("behind", { lane: "two" });
  t.worker.run(last);
  await until(() => begun.includes("behind"));
  expect(begun).toEqual(["first", "undone", "z", "last", "behind"]);
});

describe("leases", () => {
  /** Long enough for every lease to run out. */
  const PAST_LEASE = `${JOB_RULES.route_message.lease_seconds + 60}s`;

  const beginnings: Record<string, (t: Awaited<ReturnType<typeof setUp>>) => Promise<unknown>> = {
    "that was claimed": (t) => t.add(),
    "that its caller runs": async (t) => {
      t.worker.reserve("route_message", use(null));
      t.worker.run((await t.add({ claimed: true })) as Job);
    },
    "that follows another": async (t) => {
      t.worker.reserve("route_message", use(null));
      const ended = (await t.add({ claimed: true }, "first")) as Job;
      const next = await t.app.write(async (tx) => {
        await enqueue(t.app, tx, { kind: "route_message", payload: { message_id: "m" } });
        await finishJob(tx, ended);
        return t.worker.claimNext(tx, ended);
      });
      t.worker.follow(next as Job);
      t.worker.release("route_message", ended);
    },
  };

  test.each(Object.keys(beginnings))(
    "a job %s is begun by nobody else while it runs, though its lease is over, and its end counts",
    async (beginning) => {
      const g = gate();
      await using t = await setUp({ route: g.run });
      t.worker.start();
      await beginnings[beginning]?.(t);
      await g.count(1);
      t.clock.advance(PAST_LEASE);
      await t.add({}, "another");
      await g.count(2);
      const drained = t.worker.drain();
      expect(await t.jobs()).toMatchObject([{ status: "running", attempts: 1 }, { attempts: 1 }]);
      g.open();
      g.open();
      await drained;
      expect(g.begun).toEqual(["m", "another"]);
      expect(await t.jobs()).toEqual([]);
    },
  );

  test("a job that has ended, and nobody could write it down, is begun again once its lease is over", async () => {
    const attempts: number[] = [];
    await using t = await setUp({
      async route(app, job, signal) {
        attempts.push(job.attempts);
        if (job.attempts === 1) throw new LeaseLostError(job);
        await finish(app, job, signal);
      },
    });
    await t.add();
    await t.worker.drain();
    t.clock.advance("1s");
    await t.worker.drain();
    expect(attempts).toEqual([1]);
    t.clock.advance(PAST_LEASE);
    await t.worker.drain();
    expect(attempts).toEqual([1, 2]);
    expect(await t.jobs()).toEqual([]);
  });

  test("a claim takes no lease for over that was begun with its own commit, however long that takes", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run });
    t.worker.reserve("route_message", use(null));
    const claimed = t.app.write(async (tx) => {
      const payload = { message_id: "m" };
      const job = await enqueue(t.app, tx, { kind: "route_message", payload, claimed: true });
      // The process stands still.
      t.clock.advance(PAST_LEASE);
      return job;
    });
    const filled = t.worker.drain();
    t.worker.run((await claimed) as Job);
    await g.count(1);
    g.open();
    await filled;
    expect(g.begun).toEqual(["m"]);
    expect(await t.jobs()).toEqual([]);
  });

  test("what a holder writes is undone when its job was given to another", async () => {
    const endings: string[] = [];
    const begun: number[] = [];
    const late = Promise.withResolvers<void>();
    await using t = await setUp({
      async route(app, job) {
        const attempt = job.attempts;
        begun.push(attempt);
        if (attempt === 1) await late.promise;
        await app.write(async (tx) => {
          await tx.insertInto("retired_addresses").values(mark(app, attempt)).execute();
          await finishJob(tx, job);
          endings.push(`attempt ${attempt}`);
        });
      },
    });
    await t.add();
    const first = t.worker.drain();
    while (begun.length === 0) await t.app.write(() => Promise.resolve());
    await t.app.write(voidLeases);
    const second = t.worker.drain();
    while ((await t.jobs()).length > 0) await t.app.write(() => Promise.resolve());
    late.resolve();
    await Promise.all([first, second]);
    expect(endings).toEqual(["attempt 2"]);
    expect(await t.app.db.selectFrom("retired_addresses").select("address").execute()).toEqual([
      { address: "attempt 2" },
    ]);
  });

  test("a clock that is set forward ends no lease", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run });
    t.app.steadyNow = () => 0;
    t.worker.start();
    await t.add();
    await g.count(1);
    t.clock.advance("30d");
    await t.add({}, "next");
    await g.count(2);
    expect(g.begun).toEqual(["m", "next"]);
    expect(await t.jobs()).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
    g.open();
    g.open();
  });

  test("a holder that has lost its job neither postpones nor buries it", async () => {
    await using t = await setUp({ route: () => Promise.reject(new Error("late failure")) });
    const job = await t.add({ claimed: true });
    await t.app.db
      .updateTable("jobs")
      .set({ attempts: 2, lease_until: t.app.now() + 900 })
      .execute();
    t.worker.reserve("route_message", use(null));
    t.worker.run(job as Job);
    await t.worker.drain();
    expect(await t.jobs()).toMatchObject([{ status: "running", attempts: 2, failures: 0, last_error: null }]);
  });
});
