import { describe, expect, test } from "bun:test";
import { enqueue, finishJob, type Job, type Share, voidLeases } from "../../src/jobs/queue.ts";
import type { JobWorker } from "../../src/jobs/worker.ts";
import { gate, type Run, setUp, use } from "./work-room.ts";
import { until } from "../support/until.ts";

async function stopped(worker: JobWorker): Promise<void> {
  await worker[Symbol.asyncDispose]();
}

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
    await using t = await setUp({ route: g.run, slots: 16, target_slots: 4 });
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
    await g.count(14);
    expect(g.begun.slice(12)).toEqual(["bob, slow", "bob"]);
    await t.app.db.deleteFrom("jobs").where("status", "=", "pending").execute();
    while ((await t.jobs()).length > 0) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
  });

  test("whoever waits for a place has its turn there before those have another who had one, however long they wait", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16, target_slots: 2 });
    const add = (account: string) =>
      t.add({ share: { account, slots: null }, target: "slow.example" }, account);
    for (let count = 1; count <= 4; count++) for (const account of ["carl", "dora"]) await add(account);
    t.worker.start();
    await g.count(2);
    for (const account of ["eve", "fred"]) await add(account);
    while (g.begun.length < 6) {
      g.open();
      await g.count(g.begun.length + 1);
    }
    expect(g.begun).toEqual(["carl", "dora", "eve", "fred", "carl", "dora"]);
    await t.app.db.deleteFrom("jobs").where("status", "=", "pending").execute();
    for (let ended = 0; ended < 2; ended++) g.open();
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
    await until(() => begun.length >= 2);
    const carl = { account: "carl", slots: 1 };
    for (const name of ["carl 1", "carl 2"]) await t.add({ share: carl, weight: 700 }, name);
    for (const name of ["ada", "bob"]) ends.get(name)?.end();
    await until(() => begun.length >= 3);
    for (let commit = 0; commit < 5; commit++) await t.app.write(() => Promise.resolve());
    expect(begun).toEqual(["ada", "bob", "carl 1"]);
    ends.get("carl 1")?.end();
    await until(() => begun.length >= 4);
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

  test("what strangers cause waits behind what the household does, however much and however early it came", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16 });
    const eve = { account: "ada", slots: 3, strangers: true };
    const household = { account: "ada", slots: 3 };
    const route = (name: string, share: Share) => ({
      kind: "route_message" as const,
      payload: { message_id: name },
      share,
    });
    await t.app.write(async (tx) => {
      for (let count = 1; count <= 1_100; count++) await enqueue(t.app, tx, route("eve", eve));
      for (const name of ["ada 1", "ada 2"]) await enqueue(t.app, tx, route(name, household));
    });
    await t.add({ share: bob }, "bob");
    t.worker.start();
    await g.count(4);
    expect(g.begun.toSorted()).toEqual(["ada 1", "ada 2", "bob", "eve"]);
    await t.add({ share: household }, "ada 3");
    await t.app.write(() => Promise.resolve());
    expect(g.begun).toHaveLength(4);
    // Whoever ends, what comes next is not of strangers.
    g.open();
    g.open();
    await g.count(5);
    expect(g.begun[4]).toBe("ada 3");
    await t.app.write((tx) => tx.deleteFrom("jobs").where("status", "=", "pending").execute());
    for (let left = 0; left < 3; left++) g.open();
  });

  test("strangers who wait keep no caller of the household from a slot, and nothing of others", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 16 });
    for (let count = 1; count <= 5; count++)
      await t.add({ share: { account: "ada", slots: 2, strangers: true } }, `eve ${count}`);
    t.worker.start();
    await g.count(1);
    await t.app.write(() => Promise.resolve());
    expect(g.begun).toEqual(["eve 1"]);
    const call = use({ account: "ada", slots: 2 });
    expect(t.worker.reserve("route_message", call)).toBe(true);
    expect(t.worker.reserve("route_message", call)).toBe(false);
    t.worker.release("route_message", call);
    g.open();
    await g.count(2);
    for (let count = 2; count <= 5; count++) {
      await g.count(count);
      g.open();
    }
    expect(g.begun).toEqual(["eve 1", "eve 2", "eve 3", "eve 4", "eve 5"]);
  });

  test("a newcomer whose account has no memory left for it is not looked for, a lighter one begins", async () => {
    const g = gate();
    await using t = await setUp({ route: g.run, slots: 12, bytes: 1_000 });
    const heavy = { share: { account: "ada", slots: null }, weight: 300 };
    t.worker.start();
    for (const name of ["heavy 1", "heavy 2"]) await t.add(heavy, name);
    await g.count(1);
    await t.app.write(() => Promise.resolve());
    const { write } = t.app;
    let writes = 0;
    t.app.write = (operation) => {
      writes += 1;
      return write(operation);
    };
    for (const name of ["heavy 3", "heavy 4"]) await t.add(heavy, name);
    expect(writes).toBe(2);
    await t.add({ ...heavy, weight: 100 }, "light");
    await g.count(2);
    expect(g.begun).toEqual(["heavy 1", "light"]);
    while ((await t.jobs()).length > 0) {
      g.open();
      await t.app.write(() => Promise.resolve());
    }
    expect(g.begun).toEqual(["heavy 1", "light", "heavy 2", "heavy 3", "heavy 4"]);
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
