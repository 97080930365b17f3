import { expect, test } from "bun:test";
import {
  type Arbitrary,
  assert,
  array,
  asyncProperty,
  constantFrom,
  integer,
  oneof,
  record,
} from "fast-check";
import type { Db } from "../../src/db/database.ts";
import { claimPending } from "../../src/jobs/claim.ts";
import { createKeptMemory } from "../../src/jobs/kept-memory.ts";
import { enqueue, finishJob, type Job, postponeJob } from "../../src/jobs/queue.ts";
import { createUses, type Room } from "../../src/jobs/shares.ts";
import { createTurns, LINES_AT_ONCE } from "../../src/jobs/turns.ts";
import { testApp, type TestApp, setWorker } from "../support/app.ts";
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
  const kept = createKeptMemory(uses);
  const running: Job[] = [];
  return {
    running,
    /** In a transaction of its own, unless the queries are to be seen. */
    async claim(limit: number, db?: Db) {
      const free = ROOM.slots - running.length;
      const options = { now: t.app.now(), leaseEnd: t.app.steadyAfter, limit: Math.min(limit, free), free };
      const claimIn = (tx: Db) => claimPending(tx, KIND, { ...options, room: ROOM, uses, turns, kept });
      const { jobs } = await (db ? claimIn(db) : t.app.write(claimIn));
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

type Step = typeof steps extends Arbitrary<(infer One)[]> ? One : never;

/** Claims beside a plain list of what waits; each claim is held against it. */
function life(t: TestApp) {
  const c = claims(t);
  /** When each is due. */
  const waiting = new Map<string, number>();

  async function claim(limit: number) {
    const jobs = await c.claim(limit);
    for (const { id } of jobs) {
      expect(waiting.get(id)).toBeLessThanOrEqual(t.app.now());
      waiting.delete(id);
    }
    expect(c.running.filter(({ target }) => target === "slow").length).toBeLessThanOrEqual(2);
    const bytes = c.running.reduce((sum, { weight }) => sum + weight, 0);
    expect(bytes).toBeLessThanOrEqual(ROOM.bytes);
    return jobs;
  }

  async function addSome({ add: name, count, later, strangers, ...more }: Extract<Step, { add: string }>) {
    const run_at = t.app.now() + later;
    for (let n = 0; n < count; n += 1) {
      const job = await add(t, name, { ...more, share: { account: name, slots: null, strangers }, run_at });
      waiting.set(job?.id as string, run_at);
    }
  }

  async function end({ end: index, later }: Extract<Step, { end: number }>) {
    const job = await c.end(index, later);
    if (job && later > 0) waiting.set(job.id, t.app.now() + later);
  }

  return {
    waiting,
    claim,
    async take(step: Step): Promise<void> {
      if ("add" in step) await addSome(step);
      else if ("claim" in step) await claim(step.claim);
      else if ("end" in step) await end(step);
      else t.clock.advance(`${step.seconds}s`);
    },
    async endAll(): Promise<void> {
      while (c.running.length > 0) await c.end(0);
    },
  };
}

test("whatever comes, ends and is put off: what is claimed is due, nothing is left, and each account has its turn", async () => {
  await using t = await testApp();
  await assert(
    asyncProperty(steps, async (made) => {
      await t.app.db.deleteFrom("jobs").execute();
      const one = life(t);
      for (const step of made) await one.take(step);
      await one.endAll();
      t.clock.advance("10s");
      const jobs = await t.app.db.selectFrom("jobs").select(["id", "account"]).execute();
      expect(jobs.map(({ id }) => id).toSorted()).toEqual([...one.waiting.keys()].toSorted());
      const accounts = new Set(jobs.map(({ account: line }) => line?.replace("/strangers", "")));
      const early = new Set<string | undefined>();
      for (let turn = 0; one.waiting.size > 0; turn += 1) {
        const [job] = await one.claim(1);
        expect(job).toBeDefined();
        // Strangers and the household have a line each, and each may have had its turn just before.
        if (turn < 4 * accounts.size) early.add(job?.share?.account);
        await one.endAll();
      }
      expect(early).toEqual(accounts);
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
    const queries = await queriesOf(t, () => c.claim(1, t.app.db));
    await c.end(0);
    const texts = queries.flatMap(({ parameters }) => parameters.filter((one) => typeof one === "string"));
    const lists = texts.filter((text) => text.startsWith("["));
    return [queries.length, ...lists.map((list) => (JSON.parse(list) as string[]).length)];
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
  const plans = await plansOf(t, () => c.claim(1, t.app.db));
  const looks = plans
    .flatMap(({ lines }) => lines)
    .filter(
      (line) =>
        /^(SEARCH|SCAN) (job|jobs|due) /.test(line) && !line.endsWith("sqlite_autoindex_jobs_1 (id=?)"),
    );
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
  setWorker(t.app, undefined);
  await add(t, "z");
  setWorker(t.app, worker);
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
  await t.app.db
    .updateTable("jobs")
    .set({ run_at: t.app.now() + 60 })
    .execute();
  await add(t, "sooner", { run_at: t.app.now() + 60 });
  await t.app.db
    .updateTable("jobs")
    .set({ run_at: t.app.now() })
    .where("payload", "like", "%sooner%")
    .execute();
  await t.worker.drain();
  expect(begun).toEqual(["sooner"]);
  t.clock.advance("61s");
  await t.worker.drain();
  expect(begun).toEqual(["sooner", "later"]);
});
