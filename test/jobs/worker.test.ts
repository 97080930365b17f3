import { describe, expect, test } from "bun:test";
import type { App } from "../../src/app.ts";
import { messageOf } from "../../src/errors.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import {
  deferJob,
  enqueue,
  finishJob,
  type Job,
  postponeJob,
  type Share,
  voidLeases,
} from "../../src/jobs/queue.ts";
import type { JobHandler, JobHandlers } from "../../src/jobs/run-job.ts";
import type { Use } from "../../src/jobs/shares.ts";
import { createWorker, type JobWorker } from "../../src/jobs/worker.ts";
import { testApp } from "../support/app.ts";
import { startClock } from "../support/own-time.ts";

type Run = JobHandler<"route_message">["run"];

const finish: Run = (app, job) => app.write((tx) => finishJob(tx, job));

interface Kinds {
  route?: Run;
  send?: Run;
  slots?: number;
  bytes?: number;
  target_slots?: number;
  giveUp?: NonNullable<JobHandler<"route_message">["giveUp"]>;
}

/** What a job of this share takes. */
const use = (share: Share | null, weight = 0): Use => ({ share, weight, target: null });

/** A worker of its own over a fresh app; it works only when told to, or after `start`. */
async function setUp({ route = finish, send = finish, slots = 4, giveUp, ...room }: Kinds) {
  const t = await testApp();
  const others = Object.keys(JOB_RULES).map((kind) => [kind, { run: finish, slots }]);
  const handlers: JobHandlers = {
    ...(Object.fromEntries(others) as JobHandlers),
    route_message: { run: route, slots, ...room, ...(giveUp ? { giveUp } : {}) },
    send_mail: { run: send as unknown as JobHandler<"send_mail">["run"], slots },
  };
  const worker = createWorker(t.app, handlers);
  t.app.worker = worker;
  return {
    ...t,
    worker,
    add: (options: Partial<Parameters<typeof enqueue<"route_message">>[2]> = {}, name = "m") =>
      t.app.write((tx) =>
        enqueue(t.app, tx, { kind: "route_message", payload: { message_id: name }, ...options }),
      ),
    addMail: () =>
      t.app.write((tx) => enqueue(t.app, tx, { kind: "send_mail", payload: { outgoing_id: "o" } })),
    jobs: () => t.app.db.selectFrom("jobs").selectAll().orderBy("id").execute(),
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** A handler that reports each job it is given and then waits to be let go. */
function gate() {
  const begun: string[] = [];
  const jobs: Job[] = [];
  const waiting: (() => void)[] = [];
  let heard = Promise.withResolvers<void>();
  const run: Run = async (app, job, signal) => {
    begun.push(job.payload.message_id);
    jobs.push(job);
    const go = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => go.reject(signal.reason as Error));
    waiting.push(go.resolve);
    heard.resolve();
    heard = Promise.withResolvers();
    await go.promise;
    await finish(app, job, signal);
  };
  return {
    begun,
    jobs,
    run,
    open: () => waiting.shift()?.(),
    async count(wanted: number) {
      while (begun.length < wanted) await heard.promise;
    },
  };
}

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

describe("shares", () => {
  const ada = { account: "ada", slots: 1 };
  const bob = { account: "bob", slots: 2 };

  test("an account with more to do than its share holds up no other", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 4 });
    for (const name of ["ada 1", "ada 2", "ada 3"]) await t.add({ share: ada }, name);
    for (const name of ["bob 1", "bob 2", "bob 3"]) await t.add({ share: bob }, name);
    t.worker.start();
    await g.count(3);
    expect(g.begun).toEqual(["ada 1", "bob 1", "bob 2"]);
    g.open();
    await g.count(4);
    expect(g.begun[3]).toBe("ada 2");
    g.open();
    await g.count(5);
    expect(g.begun[4]).toBe("bob 3");
    g.open();
    g.open();
    await g.count(6);
    expect(g.begun[5]).toBe("ada 3");
    g.open();
    g.open();
  });

  test("an account alone has most slots, and once others come it begins nothing before it has its part again", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 12 });
    const carl = { account: "carl", slots: null };
    for (let count = 1; count <= 12; count++) await t.add({ share: carl }, `carl ${count}`);
    t.worker.start();
    await g.count(8);
    await t.app.write(() => Promise.resolve());
    expect(g.begun).toHaveLength(8);
    for (const name of ["bob 1", "bob 2", "bob 3"]) await t.add({ share: bob }, name);
    await t.add({ share: ada }, "ada 1");
    await g.count(11);
    expect(g.begun.slice(8)).toEqual(["bob 1", "bob 2", "ada 1"]);
    // Two of carl's end, and six are as many as are not free: nobody of his begins before there are fewer.
    for (let ended = 0; ended < 2; ended++) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
    expect(g.begun).toHaveLength(11);
    while ((await t.jobs()).length > 0) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
    expect(g.begun).toHaveLength(16);
  });

  test.each([1, 2, 3])(
    "with %p accounts of which 20 jobs hang, the job of another begins at once, also after a restart",
    async (hostile) => {
      const g = gate();
      await using t = await setUp({ route: g.run, slots: 16 });
      for (let account = 1; account <= hostile; account++)
        for (let count = 1; count <= 20; count++)
          await t.add({ share: { account: `hostile ${account}`, slots: 20 } }, `hostile ${account}`);
      // What a process that was killed had claimed.
      await t.app.db.updateTable("jobs").set({ status: "running", lease_until: 1 }).execute();
      await t.app.write((tx) => voidLeases(tx));
      t.worker.start();
      await t.app.write(() => Promise.resolve());
      await t.app.write(() => Promise.resolve());
      const before = g.begun.length;
      expect(before).toBeLessThan(16);
      await t.add({ share: ada }, "ada 1");
      await g.count(before + 1);
      expect(g.begun[before]).toBe("ada 1");
      while ((await t.jobs()).length > 0) {
        g.open();
        await t.app.write(() => Promise.resolve());
      }
    },
  );

  test("accounts that may use what they leave free never use all the slots, however much they have to do", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 8 });
    const free = (account: string) => ({ share: { account, slots: null } });
    for (const name of ["carl", "dora"])
      for (let count = 1; count <= 8; count++) await t.add(free(name), name);
    t.worker.start();
    await g.count(6);
    await t.app.write(() => Promise.resolve());
    expect(g.begun.toSorted()).toEqual(["carl", "carl", "carl", "carl", "dora", "dora"]);
    expect(t.worker.reserve("route_message", use(free("carl").share))).toBe(false);
    await t.add(free("eve"), "eve");
    await g.count(7);
    expect(g.begun[6]).toBe("eve");
    while ((await t.jobs()).length > 0) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
    expect(g.begun).toHaveLength(17);
  });

  test("many jobs of an account for slow places hold up neither its others nor those of other accounts", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16, target_slots: 2 });
    const share = { account: "carl", slots: null };
    for (let count = 1; count <= 100; count++) await t.add({ share, target: "slow.example" }, "slow");
    await t.add({ share, target: "other.example" }, "other");
    for (let place = 1; place <= 100; place++) await t.add({ share, target: `${place}.example` }, "place");
    t.worker.start();
    await g.count(12);
    expect(g.begun.slice(0, 4)).toEqual(["slow", "slow", "other", "place"]);
    expect(g.begun.filter((name) => name === "slow")).toHaveLength(2);
    await t.add({ share: bob, target: "slow.example" }, "bob, slow");
    await t.add({ share: bob, target: "quick.example" }, "bob");
    await g.count(13);
    expect(g.begun[12]).toBe("bob");
    await t.app.db.deleteFrom("jobs").where("status", "=", "pending").execute();
    while ((await t.jobs()).length > 0) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
  });

  test("a light job goes past a heavy one of its account that waits for memory, as soon as it is there", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16, bytes: 100 });
    const carl = { account: "carl", slots: null };
    t.worker.start();
    await t.add({ share: carl, weight: 40 }, "heavy");
    await g.count(1);
    await t.add({ share: carl, weight: 40 }, "heavy too");
    await t.app.write(() => Promise.resolve());
    await t.add({ share: carl, weight: 5 }, "light");
    await g.count(2);
    expect(g.begun).toEqual(["heavy", "light"]);
    for (let ended = 0; ended < 2; ended++) g.open();
    await g.count(3);
    g.open();
  });

  test("jobs that end in one commit are not followed by more than their account and the memory allow", async () => {
    const ends = new Map<string, { end: () => void }>();
    const begun: string[] = [];
    const follow: Run = async (app, job) => {
      begun.push(job.payload.message_id);
      const go = Promise.withResolvers<void>();
      ends.set(job.payload.message_id, { end: go.resolve });
      await go.promise;
      const next = await app.write(async (tx) => {
        await finishJob(tx, job);
        return app.worker?.claimNext(tx, job);
      });
      if (next) app.worker?.follow(next);
    };
    await using t = await setUp({ route: follow, slots: 2, bytes: 1_000 });
    t.worker.start();
    for (const name of ["ada", "bob"]) await t.add({ share: { account: name, slots: 1 } }, name);
    while (begun.length < 2) await Bun.sleep(1);
    const carl = { account: "carl", slots: 1 };
    for (const name of ["carl 1", "carl 2"]) await t.add({ share: carl, weight: 700 }, name);
    for (const name of ["ada", "bob"]) ends.get(name)?.end();
    while (begun.length < 3) await Bun.sleep(1);
    for (let commit = 0; commit < 5; commit++) await t.app.write(() => Promise.resolve());
    expect(begun).toEqual(["ada", "bob", "carl 1"]);
    ends.get("carl 1")?.end();
    while (begun.length < 4) await Bun.sleep(1);
    ends.get("carl 2")?.end();
  });

  test("what there is no memory for waits, also over a restart, and whatever is smaller goes past it", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16, bytes: 100 });
    const carl = { account: "carl", slots: null };
    for (const name of ["carl 1", "carl 2"]) await t.add({ share: carl, weight: 60 }, name);
    await t.add({ share: ada, weight: 50 }, "ada");
    await t.add({ share: bob, weight: 40 }, "bob");
    await t.app.db.updateTable("jobs").set({ status: "running", lease_until: 1 }).execute();
    await t.app.write((tx) => voidLeases(tx));
    t.worker.start();
    await g.count(2);
    expect(g.begun).toEqual(["carl 1", "bob"]);
    expect(t.worker.reserve("route_message", use({ account: "eve", slots: 1 }, 1))).toBe(false);
    g.open();
    await g.count(3);
    expect(g.begun[2]).toBe("carl 2");
    for (let ended = 0; ended < 2; ended++) g.open();
    await g.count(4);
    expect(g.begun[3]).toBe("ada");
    g.open();
  });

  test("a job without a share counts for nobody", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 4 });
    await t.add({ share: ada }, "ada 1");
    await t.add({ share: ada }, "ada 2");
    await t.add({}, "free 1");
    await t.add({}, "free 2");
    t.worker.start();
    await g.count(3);
    expect(g.begun).toEqual(["ada 1", "free 1", "free 2"]);
    for (let index = 0; index < 3; index++) g.open();
    await g.count(4);
    g.open();
  });

  test("a caller gets no slot while its account uses its share or has older work waiting", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 4 });
    expect(t.worker.reserve("route_message", use(ada))).toBe(true);
    expect(t.worker.reserve("route_message", use(ada))).toBe(false);
    expect(t.worker.reserve("route_message", use(bob))).toBe(true);
    t.worker.release("route_message", use(bob));
    t.worker.release("route_message", use(ada));
    for (const name of ["ada 1", "ada 2"]) await t.add({ share: ada }, name);
    t.worker.start();
    await g.count(1);
    await t.app.write(() => Promise.resolve());
    expect(t.worker.reserve("route_message", use(ada))).toBe(false);
    expect(t.worker.reserve("route_message", use(bob))).toBe(true);
    t.worker.release("route_message", use(bob));
    g.open();
    await g.count(2);
    g.open();
  });

  test("a claim that is not committed uses nothing up", async () => {
    await using t = await setUp({});
    await t.add({ share: ada });
    const { write } = t.app;
    t.app.write = () => write(() => Promise.reject(new Error("the disk is full")));
    await t.worker.drain();
    t.app.write = write;
    expect(t.worker.reserve("route_message", use(ada))).toBe(true);
    t.worker.release("route_message", use(ada));
    await t.worker.drain();
    expect(await t.jobs()).toEqual([]);
  });
});

describe("claiming the next job in the transaction that ends one", () => {
  /** A handler that ends its job and takes the next one on; `fail` makes the commit of the first such ending fail. */
  function chain({ fail = false } = {}) {
    const runs: string[] = [];
    let atOnce = 0;
    let most = 0;
    const run: Run = async (app, job) => {
      runs.push(job.payload.message_id);
      most = Math.max(most, ++atOnce);
      try {
        const next = await app.write(async (tx) => {
          await finishJob(tx, job);
          const claimed = await app.worker?.claimNext(tx, job);
          if (fail && claimed) throw new Error("commit failed");
          return claimed;
        });
        atOnce -= 1;
        if (next) app.worker?.follow(next);
      } catch (error) {
        fail = false;
        atOnce -= 1;
        throw error;
      }
    };
    return { run, runs, most: () => most };
  }

  /** Adds jobs while the only slot is held, so that they wait. */
  async function addWaiting(t: Awaited<ReturnType<typeof setUp>>, names: string[]): Promise<void> {
    t.worker.reserve("route_message", use(null));
    t.worker.start();
    for (const name of names) await t.add({}, name);
    t.worker.release("route_message", use(null));
  }

  test("runs all that wait, in order and no more at once than there are slots", async () => {
    const c = chain();
    await using t = await setUp({ route: c.run, slots: 1 });
    await addWaiting(t, ["1", "2", "3", "4"]);
    while ((await t.jobs()).length > 0) await t.app.write(() => Promise.resolve());
    await t.worker.drain();
    expect(c.runs).toEqual(["1", "2", "3", "4"]);
    expect(c.most()).toBe(1);
    expect(t.worker.reserve("route_message", use(null))).toBe(true);
    t.worker.release("route_message", use(null));
  });

  test("keeps to the share of the account, which the ended job gives back", async () => {
    const share = { account: "ada", slots: 1 };
    const c = chain();
    await using t = await setUp({ route: c.run, slots: 2 });
    t.worker.reserve("route_message", use(null));
    t.worker.reserve("route_message", use(null));
    t.worker.start();
    for (const name of ["1", "2", "3"]) await t.add({ share }, name);
    t.worker.release("route_message", use(null));
    t.worker.release("route_message", use(null));
    while ((await t.jobs()).length > 0) await t.app.write(() => Promise.resolve());
    await t.worker.drain();
    expect([c.runs, c.most()]).toEqual([["1", "2", "3"], 1]);
    expect(t.worker.reserve("route_message", use(share))).toBe(true);
    t.worker.release("route_message", use(share));
  });

  test("is undone with that transaction: nobody runs the job twice", async () => {
    const c = chain({ fail: true });
    await using t = await setUp({ route: c.run, slots: 1 });
    await addWaiting(t, ["1", "2"]);
    while (c.runs.length < 2) await t.app.write(() => Promise.resolve());
    await t.worker.drain();
    t.clock.advance("1m");
    await t.worker.drain();
    expect(c.runs).toEqual(["1", "2", "1"]);
    expect(await t.jobs()).toEqual([]);
  });

  test("claims nothing once the worker stops", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 1 });
    t.worker.start();
    for (const name of ["1", "2"]) await t.add({}, name);
    await g.count(1);
    const stop = stopped(t.worker);
    const [ended] = g.jobs;
    expect(await t.app.write((tx) => t.worker.claimNext(tx, ended as Job))).toBeUndefined();
    g.open();
    await stop;
    expect(await t.jobs()).toMatchObject([{ status: "pending", attempts: 0 }]);
  });
});

describe("leases", () => {
  test("a job whose lease ran out is done by another, and what its first holder writes is undone", async () => {
    const holders: (() => Promise<void>)[] = [];
    const endings: string[] = [];
    const both = Promise.withResolvers<void>();
    const late = Promise.withResolvers<void>();
    await using t = await setUp({
      async route(app, job) {
        const attempt = job.attempts;
        const end = () =>
          app.write(async (tx) => {
            await tx.insertInto("retired_addresses").values(mark(app, attempt)).execute();
            await finishJob(tx, job);
            endings.push(`attempt ${attempt}`);
          });
        holders.push(end);
        if (attempt === 2) both.resolve();
        if (attempt === 1) await late.promise;
        await end();
      },
    });
    await t.add();
    const first = t.worker.drain();
    while (holders.length === 0) await t.app.write(() => Promise.resolve());
    t.clock.advance(`${JOB_RULES.route_message.lease_seconds}s`);
    const second = t.worker.drain();
    await both.promise;
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

function mark(app: App, attempt: number) {
  return { address: `attempt ${attempt}`, retired_at: app.now() };
}

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

  test("one in the middle of which the server was killed 20 times is given up, and not before", async () => {
    const told: string[] = [];
    await using t = await setUp({
      route: () => Promise.reject(new Error("a mistake")),
      giveUp: async (_app, _tx, _job, error) => void told.push(error),
    });
    await t.add();
    await t.app.db.updateTable("jobs").set({ attempts: 19 }).execute();
    await t.worker.drain();
    expect(await t.jobs()).toMatchObject([{ status: "pending", last_error: "a mistake" }]);
    t.clock.advance("1m");
    // One of the 22 times it was begun, it failed.
    await t.app.db.updateTable("jobs").set({ attempts: 21 }).execute();
    await t.worker.drain();
    expect(told).toEqual(["The server ended 20 times in the middle of it"]);
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
