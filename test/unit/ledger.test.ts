import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Insertable } from "kysely";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import {
  carryUsed,
  creditsOf,
  currentPeriod,
  releaseCredit,
  remainingCredits,
  reserveCredit,
  settleCredit,
  takeBackTopUp,
  topUp,
} from "../../src/resources/billing/ledger.ts";
import { releaseDeadReserves } from "../../src/resources/billing/sweep.ts";
import type { Db } from "../../src/db/database.ts";
import { insertRow } from "../../src/db/prepared.ts";
import type { BillingAccountRow, MessageState, Plan, UserRow } from "../../src/db/schema.ts";
import { blankMessage } from "../../src/resources/messages/blank-message.ts";
import { type TestApp, testApp } from "../support/app.ts";

const CREDITS = { free: { credits: 2 }, pro: { credits: 5 }, team: { credits: 9 } };

let t: TestApp;
beforeEach(async () => {
  t = await testApp({ plans: CREDITS });
});
afterEach(() => t[Symbol.asyncDispose]());

describe("whatever happens in whatever order, crashes included,", () => {
  test("each pool is the sum of its amounts and never below zero, a run that is done costs 1, and others 0", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 80, size: "max" }), async (steps) => {
        const model = await newModel();
        for (const one of steps) {
          await take(model, one);
          await compare(model);
        }
        await compareRows(model);
      }),
      { numRuns: 80 },
    );
  });
});

type Step =
  | { type: "accept"; crash: boolean }
  | { type: "end"; which: number; state: "done" | "failed"; crash: boolean }
  | { type: "end_again"; which: number; how: "settle" | "release" }
  | { type: "top_up" | "take_back"; credits: number; reference: number; crash: boolean }
  | { type: "set_plan"; plan: Plan }
  | { type: "configure"; plan: Plan; credits: number }
  | { type: "wait"; days: number }
  | { type: "start" };

const plan = fc.constantFrom<Plan>("free", "pro", "team");
const which = fc.nat({ max: 20 });
const crash = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("accept"), crash }) },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant("end"),
      which,
      state: fc.constantFrom("done", "failed"),
      crash,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("end_again"),
      which,
      how: fc.constantFrom("settle", "release"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom("top_up", "take_back"),
      credits: fc.integer({ min: 1, max: 4 }),
      reference: fc.nat({ max: 6 }),
      crash,
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("set_plan"), plan }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("configure"), plan, credits: fc.integer({ min: 0, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("wait"), days: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("start") }) },
) as fc.Arbitrary<Step>;

/** The ledger as it is meant, without one. */
interface Model {
  user: UserRow;
  /** What is used of each month. */
  used: Map<string, number>;
  bought: number;
  references: Set<string>;
  runs: { id: string; month: string | null; state: MessageState }[];
}

async function newModel(): Promise<Model> {
  for (const name of ["free", "pro", "team"] as const) giveCredits(name, CREDITS[name].credits);
  const { user } = await t.as(`${Bun.randomUUIDv7()}@example.com`);
  await setPlan(t.app, { email: user.email, plan: "free" });
  return { user: { ...user, plan: "free" }, used: new Map(), bought: 0, references: new Set(), runs: [] };
}

/** As the operator does with the settings of the next start. */
function giveCredits(name: Plan, credits: number): void {
  t.app.config.plans[name].credits = credits;
}

const CRASH = new Error("the process is gone");

/** One transaction, which a crash leaves no trace of. */
async function transaction(crashes: boolean, act: (tx: Db) => Promise<unknown>): Promise<boolean> {
  try {
    await t.app.write(async (tx) => {
      await act(tx);
      if (crashes) throw CRASH;
    });
    return true;
  } catch (error) {
    if (error !== CRASH) throw error;
    return false;
  }
}

// oxlint-disable-next-line complexity
async function take(model: Model, one: Step): Promise<void> {
  switch (one.type) {
    case "accept":
      return accept(model, one.crash);
    case "end":
      return end(model, one);
    case "end_again": {
      const ended = model.runs.filter(({ state }) => state !== "received");
      const run = ended[one.which % (ended.length || 1)];
      if (!run) return undefined;
      const message = { id: run.id, user_id: model.user.id };
      await t.app.write((tx) =>
        one.how === "settle" ? settleCredit(t.app, tx, message) : releaseCredit(t.app, tx, message),
      );
      return undefined;
    }
    case "top_up":
    case "take_back":
      return changeBought(model, one);
    case "set_plan": {
      await setPlan(t.app, { email: model.user.email, plan: one.plan });
      model.user = { ...model.user, plan: one.plan };
      return undefined;
    }
    case "configure":
      return giveCredits(one.plan, one.credits);
    case "wait":
      t.clock.advance(`${one.days}d`);
      return undefined;
    case "start":
      expect(await t.app.write((tx) => releaseDeadReserves(t.app, tx))).toBe(0);
      return undefined;
  }
}

async function accept(model: Model, crashes: boolean): Promise<void> {
  const row = blankMessage(t.app, { id: null, user_id: model.user.id });
  let reserved = false;
  const committed = await transaction(crashes, async (tx) => {
    reserved = await reserveCredit(t.app, tx, model.user, { message_id: row.id });
    if (!reserved) row.state = "limited";
    await insertRow(tx, "messages", row);
  });
  if (!committed) return;
  const left = leftOf(model);
  expect(reserved).toBe(left + model.bought > 0);
  if (!reserved) return;
  const from = left > 0 ? monthNow() : null;
  if (from === null) model.bought -= 1;
  else model.used.set(from, usedIn(model, from) + 1);
  model.runs.push({ id: row.id, month: from, state: "received" });
}

async function end(
  model: Model,
  { which: at, state, crash: crashes }: Step & { type: "end" },
): Promise<void> {
  const open = model.runs.filter((run) => run.state === "received");
  const run = open[at % (open.length || 1)];
  if (!run) return;
  const message = { id: run.id, user_id: model.user.id };
  const committed = await transaction(crashes, async (tx) => {
    await (state === "done" ? settleCredit(t.app, tx, message) : releaseCredit(t.app, tx, message));
    await tx.updateTable("messages").set({ state }).where("id", "=", run.id).execute();
  });
  if (!committed) return;
  run.state = state;
  if (state === "done") return;
  if (run.month === null) model.bought += 1;
  else model.used.set(run.month, usedIn(model, run.month) - 1);
}

async function changeBought(
  model: Model,
  { type, credits, reference: number, crash: crashes }: Step & { type: "top_up" | "take_back" },
): Promise<void> {
  const reference = `${model.user.id} ${number}`;
  const change = type === "top_up" ? topUp : takeBackTopUp;
  let counted: boolean | undefined;
  const committed = await transaction(crashes, async (tx) => {
    counted = await change(t.app, tx, model.user.id, { credits, reference });
  });
  expect(counted).toBe(!model.references.has(reference));
  if (!committed || !counted) return;
  model.references.add(reference);
  model.bought = Math.max(0, model.bought + (type === "top_up" ? credits : -credits));
}

function usedIn({ used }: Model, month: string): number {
  return used.get(month) ?? 0;
}

/** Returns what is left of the plan as the operator has it now; never below zero, whatever was used before. */
function leftOf(model: Model): number {
  const { credits } = t.app.config.plans[model.user.plan];
  return Math.max(0, Number(credits) - usedIn(model, monthNow()));
}

function monthNow(): string {
  return new Date(t.clock.now()).toISOString().slice(0, 7);
}

async function compare(model: Model): Promise<void> {
  const { app } = t;
  const used = usedIn(model, monthNow());
  const left = leftOf(model);
  const seen = await creditsOf(app, app.db, model.user);
  expect(seen).toMatchObject({
    allowance: used + left,
    used,
    topup: model.bought,
    remaining: left + model.bought,
  });
  expect(await remainingCredits(app, app.db, model.user)).toBe(seen.remaining);
}

async function compareRows({ user, runs }: Model): Promise<void> {
  const rows = await t.app.db
    .selectFrom("ledger")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  const sums = new Map<string, number>();
  for (const { pool, period, amount, balance } of rows) {
    const purse = `${pool} ${period}`;
    const sum = (sums.get(purse) ?? 0) + amount;
    sums.set(purse, sum);
    expect(balance).toBe(sum);
    expect(balance).toBeGreaterThanOrEqual(0);
  }
  for (const { id, state } of runs) {
    const own = rows.filter(({ message_id }) => message_id === id);
    const cost = own.reduce((sum, { amount }) => sum - amount, 0);
    expect([state, cost]).toEqual([state, state === "failed" ? 0 : 1]);
    expect(own).toHaveLength(state === "received" ? 1 : 2);
  }
}

describe("the period", () => {
  test("of a plan that nobody pays for is the calendar month in UTC", async () => {
    const user = await paying("team", null);
    expect(await periodAt(user, "2031-03-31T23:59:59Z")).toEqual(["2031-03-01", "2031-04-01"]);
    expect(await periodAt(user, "2031-12-01T00:00:00Z")).toEqual(["2031-12-01", "2032-01-01"]);
  });

  test("of a monthly subscription is its own, and goes on by months until its renewal is heard of", async () => {
    const user = await paying("pro", ["2033-01-31T09:00:00Z", "2033-02-28T09:00:00Z"]);
    expect(await periodAt(user, "2033-02-28T08:59:59Z")).toEqual(["2033-01-31", "2033-02-28"]);
    expect(await periodAt(user, "2033-02-28T09:00:00Z")).toEqual(["2033-02-28", "2033-03-28"]);
    expect(await periodAt(user, "2033-03-28T09:00:00Z")).toEqual(["2033-03-28", "2033-04-28"]);
  });

  test("of a yearly subscription is one of its twelve months", async () => {
    const user = await paying("pro", ["2035-01-31T00:00:00Z", "2036-01-31T00:00:00Z"], { interval: "year" });
    expect(await periodAt(user, "2035-02-27T23:59:59Z")).toEqual(["2035-01-31", "2035-02-28"]);
    expect(await periodAt(user, "2035-03-15T00:00:00Z")).toEqual(["2035-02-28", "2035-03-31"]);
    expect(await periodAt(user, "2036-01-30T23:59:59Z")).toEqual(["2035-12-31", "2036-01-31"]);
    expect(await periodAt(user, "2036-01-31T00:00:00Z")).toEqual(["2036-01-31", "2036-02-29"]);
  });

  test("of who is back on Free, or whose subscription has ended, is the calendar month again", async () => {
    const range: [string, string] = ["2037-01-15T00:00:00Z", "2037-02-15T00:00:00Z"];
    const free = await paying("free", range);
    const ended = await paying("pro", range, { subscription_id: null, period_start: null, period_end: null });
    expect(await periodAt(free, "2037-01-20T00:00:00Z")).toEqual(["2037-01-01", "2037-02-01"]);
    expect(await periodAt(ended, "2037-01-20T00:00:00Z")).toEqual(["2037-01-01", "2037-02-01"]);
  });

  test("that begins has the whole allowance of its plan, whatever was left or used before", async () => {
    moveTo("2038-06-01T00:00:00Z");
    const user = await paying("pro", ["2038-06-01T00:00:00Z", "2038-07-01T00:00:00Z"]);
    await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ used: 1, remaining: 4 });
    moveTo("2038-07-02T00:00:00Z");
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ used: 0, remaining: 5 });
  });
});

describe("a change of plan", () => {
  test("before anything is spent needs no correction", async () => {
    const user = await paying("pro", null);
    await setPlan(t.app, { email: user.email, plan: "team" });
    expect(await rowsOf(user)).toEqual([]);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 9, used: 0 });
  });

  test("raises this period's allowance by the difference, and lowers it to what is used at least", async () => {
    const user = await paying("free", null);
    const spend = () =>
      t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    await spend();
    await setPlan(t.app, { email: user.email, plan: "team" });
    for (let run = 0; run < 5; run += 1) await spend();
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({
      allowance: 9,
      used: 6,
      remaining: 3,
    });
    await setPlan(t.app, { email: user.email, plan: "free" });
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 6, used: 6, remaining: 0 });
    expect(await spend()).toBe(false);
    await setPlan(t.app, { email: user.email, plan: "free" });
    expect((await rowsOf(user)).filter((kind) => kind === "adjust")).toHaveLength(2);
  });
});

describe("other credits for a plan in the settings", () => {
  test("hold in the period that runs: more can be spent at once, and less never takes back what is used", async () => {
    const user = await paying("free", null);
    const spend = () =>
      t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    for (const left of [true, true, false]) expect(await spend()).toBe(left);
    giveCredits("free", 4);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 4, used: 2, remaining: 2 });
    expect(await spend()).toBe(true);
    giveCredits("free", 1);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 3, used: 3, remaining: 0 });
    expect(await spend()).toBe(false);
    giveCredits("free", 4);
    for (const left of [true, false]) expect(await spend()).toBe(left);
    expect(await rowsOf(user)).toEqual(["grant", "reserve", "reserve", "adjust", "reserve", "reserve"]);
  });

  test("leave what was bought alone", async () => {
    const user = await paying("pro", null);
    await t.app.write((tx) => topUp(t.app, tx, user.id, { credits: 3, reference: user.id }));
    await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    giveCredits("pro", 0);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 1, topup: 3, remaining: 3 });
  });
});

describe("what was used in a period that ended before its time", () => {
  test("counts in the next one too, once", async () => {
    const user = await paying("pro", ["2039-01-10T00:00:00Z", "2039-02-10T00:00:00Z"]);
    moveTo("2039-01-12T00:00:00Z");
    for (let run = 0; run < 4; run += 1)
      await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    const first = await currentPeriod(t.app, t.app.db, user);
    const carry = () => t.app.write((tx) => carryUsed(t.app, tx, user, first));
    await carry();
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ used: 4, remaining: 1 });
    await t.app.db
      .updateTable("billing_accounts")
      .set({ interval: "year", period_start: t.app.now(), period_end: t.app.now() + 31_536_000 })
      .where("user_id", "=", user.id)
      .execute();
    for (const _ of ["once", "twice"]) {
      await carry();
      expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 5, used: 4, remaining: 1 });
    }
    giveCredits("pro", 7);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 7, used: 4, remaining: 3 });
    giveCredits("pro", 2);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 4, used: 4, remaining: 0 });
  });

  test("counts also beyond what the plan gives now, so that a larger one later does not forget it", async () => {
    const user = await paying("team", ["2040-01-10T00:00:00Z", "2040-02-10T00:00:00Z"]);
    moveTo("2040-01-12T00:00:00Z");
    for (let run = 0; run < 4; run += 1)
      await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
    const first = await currentPeriod(t.app, t.app.db, user);
    await setPlan(t.app, { email: user.email, plan: "free" });
    await t.app.write((tx) => carryUsed(t.app, tx, user, first));
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 4, used: 4, remaining: 0 });
    giveCredits("free", 5);
    expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 5, used: 4, remaining: 1 });
  });
});

test("a clock that is set back goes on in the period of then, and gives nothing twice", async () => {
  const user = await paying("free", null);
  const spendAt = (moment: string) => {
    const then = { ...t.app, now: () => Date.parse(moment) / 1_000 };
    return then.write((tx) => reserveCredit(then, tx, user, { message_id: Bun.randomUUIDv7() }));
  };
  for (const left of [true, true, false]) expect(await spendAt("2041-03-31T23:59:59Z")).toBe(left);
  expect(await spendAt("2041-04-01T00:00:01Z")).toBe(true);
  expect(await spendAt("2041-03-31T23:59:58Z")).toBe(false);
  for (const left of [true, false]) expect(await spendAt("2041-04-01T00:00:02Z")).toBe(left);
});

test("the credit of a run that outlives its period goes back to that one, and its plan may be another by then", async () => {
  const user = await paying("team", null);
  moveTo("2042-05-31T12:00:00Z");
  const message = { id: Bun.randomUUIDv7() };
  await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: message.id }));
  await setPlan(t.app, { email: user.email, plan: "free" });
  moveTo("2042-06-01T12:00:00Z");
  await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() }));
  for (const _ of ["once", "twice"]) await t.app.write((tx) => releaseCredit(t.app, tx, message));
  expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ allowance: 2, used: 1 });
  const rows = t.app.db
    .selectFrom("ledger")
    .select(["kind", "period", "balance"])
    .where("user_id", "=", user.id);
  expect(await rows.orderBy("id").execute()).toEqual([
    { kind: "grant", period: "2042-05", balance: 9 },
    { kind: "reserve", period: "2042-05", balance: 8 },
    { kind: "adjust", period: "2042-05", balance: 1 },
    { kind: "grant", period: "2042-06", balance: 2 },
    { kind: "reserve", period: "2042-06", balance: 1 },
    { kind: "release", period: "2042-05", balance: 2 },
  ]);
});

test("what a plan was at the beginning of a request does not matter: the one of the moment gives the credits", async () => {
  const user = await paying("team", null);
  await setPlan(t.app, { email: user.email, plan: "free" });
  // Still said to be on Team by whoever asks.
  for (const left of [true, true, false])
    expect(
      await t.app.write((tx) => reserveCredit(t.app, tx, user, { message_id: Bun.randomUUIDv7() })),
    ).toBe(left);
});

test("the sweep gives back what belongs to no run that goes on, and nothing else", async () => {
  const user = await paying("team", null);
  const reserve = async (state: MessageState | null): Promise<void> => {
    const row = { ...blankMessage(t.app, { id: null, user_id: user.id }), state: state ?? "received" };
    await t.app.write(async (tx) => {
      await reserveCredit(t.app, tx, user, { message_id: row.id });
      if (state !== null) await insertRow(tx, "messages", row);
    });
  };
  // Its message is gone; it has ended; it goes on.
  for (const state of [null, "failed", "received"] as const) await reserve(state);
  expect(await t.app.write((tx) => releaseDeadReserves(t.app, tx))).toBe(2);
  expect(await t.app.write((tx) => releaseDeadReserves(t.app, tx))).toBe(0);
  expect(await creditsOf(t.app, t.app.db, user)).toMatchObject({ used: 1, remaining: 8 });
});

async function rowsOf(user: UserRow): Promise<string[]> {
  const rows = t.app.db.selectFrom("ledger").select("kind").where("user_id", "=", user.id).orderBy("id");
  return (await rows.execute()).map(({ kind }) => kind);
}

/** An account of a plan; with a subscription of this time, if there is one. */
async function paying(
  plan: Plan,
  time: [string, string] | null,
  given: Partial<BillingAccountRow> = {},
): Promise<UserRow> {
  const { user } = await t.as(`${Bun.randomUUIDv7()}@example.com`);
  await setPlan(t.app, { email: user.email, plan });
  if (time) {
    const row: Insertable<BillingAccountRow> = {
      user_id: user.id,
      customer_id: `cus_${user.id}`,
      subscription_id: `sub_${user.id}`,
      status: "active",
      interval: "month",
      period_start: Date.parse(time[0]) / 1_000,
      period_end: Date.parse(time[1]) / 1_000,
      cancel_at_period_end: 0,
      changed: 0,
      ...given,
    };
    await t.app.write((tx) => tx.insertInto("billing_accounts").values(row).execute());
  }
  return { ...user, plan };
}

/** The days on which the period of that moment begins and ends. */
async function periodAt(user: UserRow, moment: string): Promise<[string, string]> {
  moveTo(moment);
  const { period_start, resets_at } = await creditsOf(t.app, t.app.db, user);
  const dayOf = (second: number) => new Date(second * 1_000).toISOString().slice(0, 10);
  return [dayOf(period_start), dayOf(resets_at)];
}

function moveTo(moment: string): void {
  t.clock.advance(`${Date.parse(moment) - t.clock.now()}ms`);
}
