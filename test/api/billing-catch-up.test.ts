import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { catchUpLater } from "../../src/resources/billing/catch-up.ts";
import { type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { serve } from "../../src/serve.ts";
import type { Caller } from "../support/app.ts";
import { type BillingDesk, billingDesk } from "../support/billing-desk.ts";
import { layKeys } from "../support/keys.ts";
import { startStripe, type Subscription } from "../support/stripe-stand-in.ts";

const PRO = { plans: { default: "pro" } } satisfies ConfigOverrides;
const DOWN = (): Response =>
  Response.json({ error: {} }, { status: 500, headers: { "stripe-should-retry": "false" } });

describe("what nobody told of is found within the hour:", () => {
  test("the end of a subscription, a day after its period", async () => {
    await using desk = await startedDesk();
    await desk.subscribe();
    desk.stripe.change(held(desk), { status: "canceled" });
    await pass(desk, "30d");
    expect((await desk.me()).plan).toBe("pro");
    await pass(desk, "25h");
    expect((await desk.me()).plan).toBe("free");
  });

  test("a renewal", async () => {
    await using desk = await startedDesk();
    await desk.subscribe();
    const start = desk.app.now() + 30 * 86_400;
    desk.stripe.renew(held(desk));
    await pass(desk, "31d");
    await pass(desk, "1h");
    expect((await accounts(desk))[0]).toMatchObject({ period_start: start, status: "active" });
  });

  test("a paid pack, once, and what was refunded of it", async () => {
    await using desk = await startedDesk(PRO);
    const url = await desk.page("/billing/topup");
    await desk.page("/billing/topup");
    const events = desk.stripe.pay(url);
    for (let hour = 0; hour < 3; hour += 1) await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(1_000);
    desk.stripe.refund(url, 250);
    for (let hour = 0; hour < 3; hour += 1) await pass(desk, "1h");
    await desk.deliver(...events);
    expect((await desk.me()).credits.topup).toBe(750);
  });

  test.each(["refund", "dispute"] as const)("a %s, however long after the payment", async (happens) => {
    await using desk = await startedDesk(PRO);
    const url = await desk.page("/billing/topup");
    await desk.deliver(...desk.stripe.pay(url));
    for (let day = 0; day < 5; day += 1) await pass(desk, "1d");
    if (happens === "refund") desk.stripe.refund(url, 1_000);
    else desk.stripe.dispute(url, "needs_response");
    for (let hour = 0; hour < 3; hour += 1) await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(0);
  });

  test("a payment that took its bank a week", async () => {
    await using desk = await startedDesk(PRO);
    desk.stripe.pay(await desk.page("/billing/topup"), "unpaid");
    for (let day = 0; day < 7; day += 1) await pass(desk, "1d");
    const [session] = desk.stripe.sessions;
    Object.assign(session as object, { payment_status: "paid" });
    desk.stripe.event("checkout.session.async_payment_succeeded", session as object);
    await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("that a subscription came back, once its period is over", async () => {
    await using desk = await startedDesk();
    await desk.subscribe();
    await desk.deliver(desk.stripe.change(held(desk), { status: "unpaid" }));
    desk.stripe.renew(held(desk));
    desk.stripe.change(held(desk), { status: "active" });
    await pass(desk, "31d");
    await pass(desk, "1h");
    expect((await desk.me()).plan).toBe("pro");
  });

  test("the beginning of a subscription", async () => {
    await using desk = await startedDesk();
    desk.stripe.pay(await desk.page("/billing/checkout"));
    await pass(desk, "1h");
    expect((await desk.me()).plan).toBe("pro");
  });

  test("what was paid while this server was away, for however long", async () => {
    await using desk = await startedDesk(PRO);
    desk.stripe.pay(await desk.page("/billing/topup"));
    await pass(desk, "20d");
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("more packs than Stripe tells of at once", async () => {
    await using desk = await startedDesk(PRO);
    for (let count = 0; count < 101; count += 1) desk.stripe.pay(await desk.page("/billing/topup"));
    await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(101_000);
  });

  test("more late accounts than are looked at in one go", async () => {
    await using desk = await startedDesk();
    const people = await Promise.all(Array.from({ length: 101 }, (_, index) => latecomer(desk, index)));
    await pass(desk, "1h");
    expect(new Set(await plansOf(desk, people))).toEqual(new Set(["team"]));
    expect(await jobs(desk)).toMatchObject([{ run_at: desk.app.now() + 3_600 }]);
  });
});

describe("the look at late payments is no more often, and at no more, than it has to be:", () => {
  test("once an hour, and at nobody whose period goes on", async () => {
    await using desk = await startedDesk();
    await desk.subscribe();
    await pass(desk, "1h");
    const asked = async (span: string): Promise<string[]> => {
      const before = desk.stripe.calls.length;
      await pass(desk, span);
      return desk.stripe.calls.slice(before).map(({ path }) => path);
    };
    expect(await asked("3599s")).toEqual([]);
    expect(await asked("1s")).toEqual(["/v1/checkout/sessions", "/v1/events"]);
    expect(await asked("29d")).toEqual(["/v1/checkout/sessions", "/v1/events"]);
  });

  test("Stripe is left alone while nobody has paid", async () => {
    await using desk = await startedDesk();
    await pass(desk, "1h");
    expect([desk.stripe.calls, await jobs(desk)]).toEqual([[], [expect.objectContaining({ failures: 0 })]]);
  });

  test("other people's payments at the same Stripe account are none of ours", async () => {
    await using desk = await startedDesk(PRO);
    desk.stripe.pay(await desk.page("/billing/topup"));
    Object.assign(desk.stripe.sessions[0] as object, { customer: "cus_other" });
    await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(0);
  });

  test("twice begun it goes on once", async () => {
    await using desk = await startedDesk();
    await desk.app.write((tx) => catchUpLater(desk.app, tx));
    expect(await jobs(desk)).toHaveLength(1);
  });

  test("after a clock that was years ahead it goes on with the next start, and makes up for the time between", async () => {
    await using desk = await startedDesk(PRO);
    const url = await desk.page("/billing/topup");
    desk.stripe.pay(url);
    const payload = JSON.stringify({ since: desk.app.now() + 1e8, after: null });
    await desk.app.db
      .updateTable("jobs")
      .set({ payload, run_at: desk.app.now() + 1e8 })
      .execute();
    await pass(desk, "10d");
    expect((await desk.me()).credits.topup).toBe(0);
    await desk.app.write((tx) => catchUpLater(desk.app, tx));
    await desk.drain();
    expect((await desk.me()).credits.topup).toBe(1_000);
    expect(await jobs(desk)).toMatchObject([{ run_at: desk.app.now() + 3_600 }]);
  });

  test("the look at late payments begins with the server", async () => {
    await using stripe = startStripe(() => 0);
    const dir = await mkdtemp(join(tmpdir(), "mailwright-serve-"));
    await using _ = { [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
    await layKeys(dir);
    const places = { data: { dir }, server: { listen: "127.0.0.1:0" }, smtp: { listen: "" } };
    const log = createLog({ level: "silent", format: "text" });
    await using server = await serve(defaultConfig({ ...places, ...stripe.config }), { log });
    expect(await jobs(server)).toHaveLength(1);
  });

  test("where no payments are taken it does not begin, and where they are taken no more it ends", async () => {
    await using desk = await startedDesk({ billing: { stripe_secret_key: "" } });
    expect(await jobs(desk)).toEqual([]);
    await using former = await startedDesk();
    former.app.config.billing.stripe_webhook_secret = "";
    await pass(former, "1h");
    expect([former.stripe.calls, await jobs(former)]).toEqual([[], []]);
  });
});

describe("a fault stops nobody else:", () => {
  test("an account that Stripe says nothing sensible of", async () => {
    await using desk = await startedDesk();
    const people = await Promise.all([0, 1, 2].map((index) => latecomer(desk, index)));
    const [first] = (await accounts(desk)).map(({ customer_id }) => customer_id);
    const broken = desk.stripe.subscriptions.find(({ customer }) => customer === first);
    Object.assign(broken as object, { items: null });
    await pass(desk, "1h");
    expect((await plansOf(desk, people)).sort()).toEqual(["pro", "team", "team"]);
  });

  test("a payment that cannot be written down, which is tried again for as long as it takes", async () => {
    await using desk = await startedDesk();
    desk.stripe.pay(await desk.page("/billing/checkout"));
    const { billing } = desk.app.config;
    const right = billing.price_pro_month;
    billing.price_pro_month = "price_Mistyped";
    const bob = await desk.as("bob@example.com");
    const { body } = await bob.post("/billing/checkout", { plan: "team" });
    desk.stripe.pay(body.url);
    for (let day = 0; day < 5; day += 1) await pass(desk, "1d");
    expect([(await desk.me()).plan, await plansOf(desk, [bob])]).toEqual(["free", ["team"]]);
    billing.price_pro_month = right;
    await pass(desk, "1h");
    expect((await desk.me()).plan).toBe("pro");
  });

  test("while Stripe is down it waits, and then makes up for all", async () => {
    await using desk = await startedDesk(PRO);
    desk.stripe.pay(await desk.page("/billing/topup"));
    desk.stripe.first = DOWN;
    await pass(desk, "5d");
    expect(await jobs(desk)).toMatchObject([{ status: "pending", failures: 1 }]);
    desk.stripe.first = () => undefined;
    await pass(desk, "1h");
    expect((await desk.me()).credits.topup).toBe(1_000);
    expect(await jobs(desk)).toMatchObject([{ failures: 0, run_at: desk.app.now() + 3_600 }]);
  });

  test("an account that is deleted in the middle", async () => {
    await using desk = await startedDesk();
    await latecomer(desk, 0);
    const asked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<undefined>();
    desk.stripe.first = ({ path }) => {
      if (path !== "/v1/subscriptions") return undefined;
      asked.resolve();
      return goOn.promise;
    };
    const turn = pass(desk, "1h");
    await asked.promise;
    await desk.app.db.deleteFrom("users").where("email", "like", "late%").execute();
    goOn.resolve(undefined);
    await turn;
    expect([await accounts(desk), (await jobs(desk)).length]).toEqual([[], 1]);
  });
});

async function startedDesk(overrides: ConfigOverrides = {}): Promise<BillingDesk> {
  const desk = await billingDesk(overrides);
  Object.assign(desk.app.config.billing, overrides.billing);
  await desk.app.write((tx) => catchUpLater(desk.app, tx));
  await desk.drain();
  return desk;
}

async function pass(desk: BillingDesk, span: string): Promise<void> {
  desk.clock.advance(span);
  await desk.drain();
}

/** Somebody on Pro whose renewal two days ago, as Team, nobody told of. */
async function latecomer(desk: BillingDesk, index: number): Promise<Caller> {
  const { app, stripe } = desk;
  const caller = await desk.as(`late${index}@example.com`);
  const { user } = caller;
  const [customer_id, subscription_id] = [`cus_late${index}`, `sub_late${index}`];
  const period_end = app.now() - 2 * 86_400;
  stripe.customers.push({ id: customer_id, email: user.email, deleted: false });
  stripe.subscriptions.push(teamSince(period_end, { id: subscription_id, customer: customer_id }));
  await app.db.updateTable("users").set({ plan: "pro" }).where("id", "=", user.id).execute();
  await app.db
    .insertInto("billing_accounts")
    .values({
      user_id: user.id,
      customer_id,
      subscription_id,
      plan: "pro",
      status: "active",
      interval: "month",
      period_start: period_end - 30 * 86_400,
      period_end,
      cancel_at_period_end: 0,
      changed: 0,
    })
    .execute();
  return caller;
}

function teamSince(start: number, ids: { id: string; customer: string }): Subscription {
  const price = { id: "price_TeamMonth", recurring: { interval: "month" } };
  const item = { id: `si_${ids.id}`, price, current_period_start: start };
  return {
    ...ids,
    status: "active",
    cancel_at_period_end: false,
    cancel_at: null,
    metadata: {},
    items: {
      object: "list",
      data: [{ ...item, current_period_end: start + 30 * 86_400 }],
      has_more: false,
    },
  };
}

async function plansOf({ app }: BillingDesk, people: Caller[]): Promise<string[]> {
  const ids = people.map(({ user }) => user.id);
  const rows = await app.db.selectFrom("users").select("plan").where("id", "in", ids).execute();
  return rows.map(({ plan }) => plan);
}

function held({ stripe }: BillingDesk): Subscription {
  const [subscription] = stripe.subscriptions;
  if (!subscription) throw new Error("There is no subscription");
  return subscription;
}

function accounts({ app }: BillingDesk) {
  return app.db.selectFrom("billing_accounts").selectAll().orderBy("user_id").execute();
}

function jobs({ app }: Pick<BillingDesk, "app">) {
  return app.db.selectFrom("jobs").selectAll().where("kind", "=", "catch_up_payments").execute();
}
