import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { topUp } from "../../src/resources/billing/ledger.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";

const DEMO = { llm: { kind: "demo" as const } };

test("a finished run is a grant, a reserve and a settle on the ledger", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 5 } } });
  const { ada } = await deskOf(t);
  const { body } = await ada.post("/v1/messages", { instruction: "x" });
  expect(await ledgerOf(t)).toEqual([
    { kind: "grant", amount: 5, balance: 5, period: "2026-01", message_id: null },
    { kind: "reserve", amount: -1, balance: 4, period: "2026-01", message_id: body.message_id },
    { kind: "settle", amount: 0, balance: 4, period: "2026-01", message_id: body.message_id },
  ]);
});

test("a failed run gives its reserve back", async () => {
  await using model = startModelServer({ fault: "unauthorized" });
  await using t = await testApp(modelAt(model, { plans: { team: { credits: 5 } } }));
  const { ada } = await deskOf(t);
  const { body } = await ada.post("/v1/messages", { instruction: "x" });
  expect(body.credits).toEqual({ charged: 0, remaining: 5 });
  expect((await ledgerOf(t)).map(({ kind, balance }) => [kind, balance])).toEqual([
    ["grant", 5],
    ["reserve", 4],
    ["release", 5],
  ]);
});

test("a run that ends in the next month gives back to the month it was taken from", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 5 } } });
  const { ada, inbox_id } = await deskOf(t);
  await ada.post("/v1/messages", { instruction: "x", async: true });
  t.clock.advance("20d");
  await ada.delete(`/inboxes/${inbox_id}`);
  await t.drain();
  expect((await ledgerOf(t)).at(-1)).toMatchObject({ kind: "release", period: "2026-01", balance: 5 });
  await ada.post("/inboxes", {});
  const { body } = await ada.post("/v1/messages", { instruction: "y" });
  expect(body.credits).toEqual({ charged: 1, remaining: 4 });
});

test("over the credit cap the answer is the routing shape with 429, and no Retry-After", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 1 } } });
  const { ada } = await deskOf(t);
  await ada.post("/v1/messages", { instruction: "x" });
  const answer = await ada.post("/v1/messages", { instruction: "one too many" });
  expect(answer.status).toBe(429);
  expect(answer.headers.has("retry-after")).toBe(false);
  expect(answer.headers.get("content-type")).toStartWith("application/json");
  expect(answer.body).toMatchObject({
    status: "limited",
    code: "credit_limit",
    result: "",
    error: "Credit limit reached: this account has no credits left this month.",
    usage: null,
    steps: [],
    attachments: [],
    credits: { charged: 0, remaining: 0, resets_at: Date.UTC(2026, 1, 1) / 1_000 },
  });
  expect(await kindsOf(t)).toEqual(["grant", "reserve", "settle"]);
  const polled = await ada.get(`/v1/messages/${answer.body.message_id}`);
  expect([polled.status, polled.body.status]).toEqual([200, "limited"]);
  expect((await ada.get("/messages")).body.items[0]).toMatchObject({ status: "limited", credits_charged: 0 });
  await t.drain();
  expect((await ada.get(`/v1/messages/${answer.body.message_id}`)).body.status).toBe("limited");
});

test("credits come back with the month", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 1 } } });
  const { ada } = await deskOf(t);
  await ada.post("/v1/messages", { instruction: "x" });
  const { body } = await ada.post("/v1/messages", { instruction: "x" });
  t.clock.advance(`${body.credits.resets_at - t.app.now() - 1}s`);
  expect((await ada.post("/v1/messages", { instruction: "x" })).status).toBe(429);
  t.clock.advance("1s");
  const again = await ada.post("/v1/messages", { instruction: "x" });
  expect([again.status, again.body.credits]).toEqual([200, { charged: 1, remaining: 0 }]);
});

test("of 1,000 calls at once with 10 credits left exactly 10 are charged", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 10, route_per_minute: 0 } } });
  t.app.worker?.start();
  const { ada } = await deskOf(t);
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, () => ada.post("/v1/messages", { instruction: "x" })),
  );
  const charged = answers.filter(({ status }) => status === 200);
  expect(charged.map(({ body }) => body.credits.charged)).toEqual(Array.from({ length: 10 }, () => 1));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(990);
  const rows = await ledgerOf(t);
  expect(Math.min(...rows.map(({ balance }) => balance))).toBe(0);
  expect(rows.map(({ kind }) => kind).sort()).toEqual([
    "grant",
    ...Array.from({ length: 10 }, () => "reserve"),
    ...Array.from({ length: 10 }, () => "settle"),
  ]);
});

test("what was bought is spent once the allowance is, is given back to where it was, and outlives the month", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model, { plans: { team: { credits: 1 } } }));
  const { ada } = await deskOf(t);
  await buy(t, ada, 2);
  const credits = async () => (await ada.get("/auth/me")).body.credits;
  const month = {
    period_start: Date.UTC(2026, 0, 1) / 1_000,
    resets_at: Date.UTC(2026, 1, 1) / 1_000,
    unlimited: false,
  };
  expect(await credits()).toEqual({ allowance: 1, used: 0, topup: 2, remaining: 3, ...month });
  const call = () => ada.post("/v1/messages", { instruction: "x" });
  expect((await call()).body.credits).toEqual({ charged: 1, remaining: 2 });
  expect((await call()).body.credits).toEqual({ charged: 1, remaining: 1 });
  model.fault = "unauthorized";
  expect((await call()).body.credits).toEqual({ charged: 0, remaining: 1 });
  model.fault = "none";
  expect(await credits()).toMatchObject({ allowance: 1, used: 1, topup: 1, remaining: 1 });
  t.clock.advance("20d");
  expect(await credits()).toMatchObject({ allowance: 1, used: 0, topup: 1, remaining: 2 });
  expect((await call()).status).toBe(200);
  expect((await call()).status).toBe(200);
  expect((await call()).status).toBe(429);
  expect(await credits()).toMatchObject({ used: 1, topup: 0, remaining: 0 });
});

test("of many calls at once with allowance and bought credits left, exactly as many are charged as there are", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 4, route_per_minute: 0 } } });
  t.app.worker?.start();
  const { ada } = await deskOf(t);
  await buy(t, ada, 6);
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => ada.post("/v1/messages", { instruction: "x" })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(50);
  expect((await ada.get("/auth/me")).body.credits).toMatchObject({ used: 4, topup: 0, remaining: 0 });
});

test("over the cap, who pays is told the end of the period that is paid for", async () => {
  await using t = await testApp({ ...DEMO, plans: { default: "pro", pro: { credits: 1 } } });
  const { ada } = await deskOf(t);
  const [period_start, period_end] = [t.app.now() - 60, t.app.now() + 86_400];
  const account = { user_id: ada.user.id, customer_id: "cus_1", subscription_id: "sub_1", status: "active" };
  const time = { interval: "month", period_start, period_end, cancel_at_period_end: 0, changed: 0 } as const;
  await t.app.db
    .insertInto("billing_accounts")
    .values({ ...account, ...time })
    .execute();
  await ada.post("/v1/messages", { instruction: "x" });
  const { status, body } = await ada.post("/v1/messages", { instruction: "x" });
  expect([status, body.credits]).toEqual([429, { charged: 0, remaining: 0, resets_at: period_end }]);
  expect((await ada.get("/auth/me")).body.credits).toMatchObject({ period_start, resets_at: period_end });
  t.clock.advance("1d");
  expect((await ada.post("/v1/messages", { instruction: "x" })).status).toBe(200);
});

test("another plan from the operator changes this month's credits at once", async () => {
  await using t = await testApp({
    ...DEMO,
    plans: { default: "free", free: { credits: 1 }, pro: { credits: 3 } },
  });
  const { ada } = await deskOf(t);
  const call = () => ada.post("/v1/messages", { instruction: "x" });
  expect([(await call()).status, (await call()).status]).toEqual([200, 429]);
  await setPlan(t.app, { email: "ada@example.com", plan: "pro" });
  expect((await ada.get("/auth/me")).body.credits).toMatchObject({ allowance: 3, used: 1, remaining: 2 });
  expect((await call()).body.credits).toEqual({ charged: 1, remaining: 1 });
  await setPlan(t.app, { email: "ada@example.com", plan: "free" });
  expect((await ada.get("/auth/me")).body.credits).toMatchObject({ allowance: 2, used: 2, remaining: 0 });
  expect((await call()).status).toBe(429);
});

test("the balance of every row is the sum of the amounts up to it, whatever happened", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model, { plans: { team: { credits: 6, route_per_minute: 0 } } }));
  const { ada } = await deskOf(t);
  for (const fault of ["none", "unauthorized", "none", "unknown_model", "none", "none", "none"] as const) {
    model.fault = fault;
    await ada.post("/v1/messages", { instruction: fault });
  }
  let sum = 0;
  for (const row of await ledgerOf(t)) {
    sum += row.amount;
    expect(row.balance).toBe(sum);
    expect(row.balance).toBeGreaterThanOrEqual(0);
  }
});

test("each call says what is left of the rate, and the one too many gets problem+json with Retry-After", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { route_per_minute: 2 } } });
  const { ada } = await deskOf(t);
  const call = (): Promise<Answer> => ada.post("/v1/messages", { instruction: "x" });
  expect(rateOf(await call())).toEqual([200, '"route";q=2;w=60', '"route";r=1;t=30', null]);
  expect(rateOf(await call())).toEqual([200, '"route";q=2;w=60', '"route";r=0;t=60', null]);
  const refused = await call();
  expect(rateOf(refused)).toEqual([429, '"route";q=2;w=60', '"route";r=0;t=60', "30"]);
  expect(refused.headers.get("content-type")).toBe("application/problem+json");
  expect(refused.body).toMatchObject({ status: 429, code: "rate_limited" });
  expect((await ada.get("/messages")).body.items).toHaveLength(2);
  t.clock.advance("30s");
  expect((await call()).status).toBe(200);
});

test("the rate is per account, and reading is not part of it", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { route_per_minute: 1 } } });
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  const { body } = await ada.post("/v1/messages", { instruction: "x" });
  expect((await ada.post("/v1/messages", { instruction: "x" })).status).toBe(429);
  for (let turn = 0; turn < 5; turn++)
    expect((await ada.get(`/v1/messages/${body.message_id}`)).status).toBe(200);
  expect((await bob.post("/v1/messages", { instruction: "x" })).status).toBe(200);
});

test("a rate of 0 is none", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { route_per_minute: 0 } } });
  const { ada } = await deskOf(t);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => ada.post("/v1/messages", { instruction: "x", async: true })),
  );
  expect(answers.every(({ status }) => status === 202)).toBe(true);
  expect(answers[0]?.headers.has("ratelimit")).toBe(false);
});

test("the two kinds of 429 cannot be taken for each other", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 0, route_per_minute: 1 } } });
  const { ada } = await deskOf(t);
  const credit = await ada.post("/v1/messages", { instruction: "x" });
  const rate = await ada.post("/v1/messages", { instruction: "x" });
  expect([credit.status, rate.status]).toEqual([429, 429]);
  expect([credit.body.code, rate.body.code]).toEqual(["credit_limit", "rate_limited"]);
  expect([credit.headers.has("retry-after"), rate.headers.has("retry-after")]).toEqual([false, true]);
  expect([credit.body.status, rate.body.status]).toEqual(["limited", 429]);
});

function buy(t: TestApp, { user }: Caller, credits: number): Promise<boolean> {
  return t.app.write((tx) => topUp(t.app, tx, user.id, { credits, reference: "pi_1" }));
}

interface LedgerLine {
  kind: string;
  amount: number;
  balance: number;
  period: string;
  message_id: string | null;
}

function ledgerOf(t: TestApp): Promise<LedgerLine[]> {
  return t.app.db
    .selectFrom("ledger")
    .select(["kind", "amount", "balance", "period", "message_id"])
    .orderBy("id")
    .execute();
}

async function kindsOf(t: TestApp): Promise<string[]> {
  return (await ledgerOf(t)).map(({ kind }) => kind);
}

function rateOf({ status, headers }: Answer): [number, string | null, string | null, string | null] {
  return [status, headers.get("ratelimit-policy"), headers.get("ratelimit"), headers.get("retry-after")];
}
