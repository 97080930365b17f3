import { expect, test } from "bun:test";
import { assert, array, asyncProperty, constantFrom, integer, oneof, record } from "fast-check";
import { claimPending } from "../../src/jobs/claim.ts";
import { enqueue, finishJob, type Job, postponeJob } from "../../src/jobs/queue.ts";
import { createUses, type Room } from "../../src/jobs/shares.ts";
import { createTurns, LINES_AT_ONCE } from "../../src/jobs/turns.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { plansOf, queriesOf } from "../support/query-plans.ts";
import { finish, gate, setUp } from "./work-room.ts";

const KIND = "route_message";
const ROOM: Room = { slots: 8, bytes: 100, target_slots: 2 };
const MANY = 3 * LINES_AT_ONCE;

type Options = Partial<Parameters<typeof enqueue<typeof KIND>>[2]>;

function add(t: TestApp, account: string, options: Options = {}) {
  const work = { kind: KIND, payload: { message_id: account }, share: { account, slots: null } } as const;
  return t.app.write((tx) => enqueue(t.app, tx, { ...work, ...options }));
}

/** The claims of one process. */
function claims(t: TestApp) {
  const uses = createUses();
  const turns = createTurns();
  const running: Job[] = [];
  return {
    running,
    async claim(limit: number) {
      const free = ROOM.slots - running.length;
      const options = { now: t.app.now(), leaseEnd: t.app.steadyAfter, limit: Math.min(limit, free), free };
      const { jobs } = await t.app.write((tx) =>
        claimPending(tx, KIND, { ...options, room: ROOM, uses, turns }),
      );
      for (const job of jobs) uses.add(job);
      running.push(...jobs);
      return jobs;
    },
    /** Ends one that runs, or puts it off. */
    async end(index: number, later = 0) {
      const [job] = running.splice(index % Math.max(1, running.length), 1);
      if (!job) return undefined;
      uses.remove(job);
      const retry = { run_at: t.app.now() + later, error: "busy" };
      await t.app.write((tx) => (later > 0 ? postponeJob(tx, job, retry) : finishJob(tx, job)));
      return job;
    },
  };
}

const account = integer({ min: 0, max: 2 * LINES_AT_ONCE }).map((n) => `a${n}`);
const steps = array(
  oneof(
    {
      weight: 6,
      arbitrary: record({
        add: account,
        count: integer({ min: 1, max: 3 }),
        later: constantFrom(0, 0, 0, 5),
        target: constantFrom(null, null, "slow"),
        weight: constantFrom(0, 0, 60),
        strangers: constantFrom(false, false, true),
      }),
    },
    { weight: 3, arbitrary: record({ claim: integer({ min: 1, max: ROOM.slots }) }) },
    { weight: 2, arbitrary: record({ end: integer({ min: 0, max: 99 }), later: constantFrom(0, 0, 7) }) },
    { weight: 1, arbitrary: record({ seconds: integer({ min: 1, max: 9 }) }) },
  ),
  { minLength: 60, maxLength: 200 },
);

test("whatever comes, ends and is put off: only what is due is claimed, and each account has its turn before any has two more", async () => {
  await using t = await testApp();
  await assert(
    asyncProperty(steps, async (made) => {
      await t.app.db.deleteFrom("jobs").execute();
      const c = claims(t);
      /** When each job that waits is due. */
      const waiting = new Map<string, number>();
      const take = async (limit: number) => {
        const jobs = await c.claim(limit);
        for (const { id } of jobs) {
          expect(waiting.get(id)).toBeLessThanOrEqual(t.app.now());
          waiting.delete(id);
        }
        expect(c.running.filter(({ target }) => target === "slow").length).toBeLessThanOrEqual(2);
        const bytes = c.running.reduce((sum, { weight }) => sum + weight, 0);
        expect(bytes).toBeLessThanOrEqual(ROOM.bytes);
        return jobs;
      };
      for (const step of made) {
        if ("add" in step) {
          const { add: name, count, later, strangers, ...more } = step;
          const share = { account: name, slots: null, strangers };
          for (let n = 0; n < count; n += 1) {
            const run_at = t.app.now() + later;
            const job = await add(t, name, { ...more, share, run_at });
            waiting.set(job?.id as string, run_at);
          }
        } else if ("claim" in step) await take(step.claim);
        else if ("seconds" in step) t.clock.advance(`${step.seconds}s`);
        else {
          const job = await c.end(step.end, step.later);
          if (job && step.later > 0) waiting.set(job.id, t.app.now() + step.later);
        }
      }
      while (c.running.length > 0) await c.end(0);
      t.clock.advance("10s");
      const jobs = await t.app.db.selectFrom("jobs").select(["id", "account"]).execute();
      expect(jobs.map(({ id }) => id).toSorted()).toEqual([...waiting.keys()].toSorted());
      const accounts = new Set(jobs.map(({ account: line }) => line?.replace("/strangers", "")));
      const untold = new Set(accounts);
      for (let turn = 0; waiting.size > 0; turn += 1) {
        const [job] = await take(1);
        await c.end(0);
        // Strangers and the household have a line each.
        if (turn < 4 * accounts.size) untold.delete(job?.share?.account);
        expect(job).toBeDefined();
      }
      expect([...untold]).toEqual([]);
    }),
    { numRuns: 25 },
  );
}, 60_000);

test.each([LINES_AT_ONCE / 2, MANY])(
  "of %d accounts with much to do each has its turn before any has another, and so has whoever comes",
  async (count) => {
    await using t = await testApp();
    const c = claims(t);
    for (let n = 0; n < count; n += 1) for (let of = 0; of < 3; of += 1) await add(t, `a${n}`);
    const turn = async () => {
      const [job] = await c.claim(1);
      await c.end(0);
      return job?.share?.account as string;
    };
    for (let n = 0; n < count / 2; n += 1) await turn();
    await add(t, "newcomer");
    const next = new Set<string>();
    for (let n = 0; n < count + 1; n += 1) next.add(await turn());
    expect(next).toContain("newcomer");
    expect(next.size).toBeGreaterThanOrEqual(count / 2 + 1);
  },
);

test("a claim asks for as much with thousands of accounts that wait as with some, and for nothing that is for later", async () => {
  await using t = await testApp();
  const c = claims(t);
  const asked = async () => {
    const queries = await queriesOf(t, () => c.claim(1));
    await c.end(0);
    const lists = queries.flatMap(({ parameters }) => parameters.filter((one) => `${one}`.startsWith("[")));
    return [queries.length, ...lists.map((list) => (JSON.parse(`${list}`) as string[]).length)];
  };
  await t.app.write(async (tx) => {
    for (let n = 0; n < 500; n += 1) {
      const share = { account: `later ${n}`, slots: null };
      const run_at = t.app.now() + 3_600;
      await enqueue(t.app, tx, { kind: KIND, payload: { message_id: "m" }, share, run_at });
    }
  });
  await add(t, "z");
  await add(t, "z");
  const one = await asked();
  expect(one.slice(1)).toContain(1);
  for (let n = 0; n < LINES_AT_ONCE + 4; n += 1) await add(t, `a${n}`);
  const some = await asked();
  for (let n = 0; n < 10 * LINES_AT_ONCE; n += 1) await add(t, `b${n}`);
  expect(await asked()).toEqual(some);
  expect([one[0], Math.max(...some)]).toEqual([some[0] as number, LINES_AT_ONCE]);
  const plans = await plansOf(t, () => c.claim(1));
  const looks = plans.flatMap(({ lines }) => lines).filter((line) => line.includes("jobs_"));
  expect(looks.length).toBeGreaterThan(0);
  for (const look of looks)
    expect(look).toMatch(
      /jobs_due \(kind=\? AND status=\? AND behind=\? AND later=\? AND <expr>|jobs_later \(kind=\?/,
    );
});

test("thousands that wait for a slow place hold up nobody else, who is found without anything ending", async () => {
  const g = gate();
  await using t = await setUp({ route: g.run, slots: 16, target_slots: 2 });
  const slow = { target: "slow.example" };
  for (let n = 0; n < MANY; n += 1) await add(t, `a${n}`, slow);
  t.worker.start();
  await g.count(2);
  await add(t, "newcomer");
  await g.count(3);
  expect(g.begun[2]).toBe("newcomer");
  // What nobody said, as when another process adds it.
  const { worker } = t.app;
  t.app.worker = undefined;
  await add(t, "z");
  t.app.worker = worker;
  t.worker.wakeAll();
  await g.count(4);
  expect(g.begun[3]).toBe("z");
  await t.app.db.deleteFrom("jobs").where("status", "=", "pending").execute();
  for (let left = 0; left < 4; left += 1) g.open();
});

test("a time that is changed by whatever program is kept to", async () => {
  const begun: string[] = [];
  await using t = await setUp({
    route: async (app, job, signal) => {
      begun.push(job.payload.message_id);
      await finish(app, job, signal);
    },
  });
  await add(t, "later");
  await t.app.db.updateTable("jobs").set({ run_at: t.app.now() + 60 }).execute();
  await add(t, "sooner", { run_at: t.app.now() + 60 });
  await t.app.db.updateTable("jobs").set({ run_at: t.app.now() }).where("payload", "like", "%sooner%").execute();
  await t.worker.drain();
  expect(begun).toEqual(["sooner"]);
  t.clock.advance("61s");
  await t.worker.drain();
  expect(begun).toEqual(["sooner", "later"]);
});
