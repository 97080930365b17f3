import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { type BillingDesk, billingDesk } from "../support/billing-desk.ts";
import { PRICES, type StripeEvent } from "../support/stripe-stand-in.ts";

describe("who sent it", () => {
  let desk: BillingDesk;
  let event: StripeEvent;
  beforeAll(async () => {
    desk = await billingDesk();
    [event] = desk.stripe.pay(await desk.page("/billing/checkout")) as [StripeEvent];
  });
  afterAll(() => desk[Symbol.asyncDispose]());

  const send = (init: RequestInit) => desk.request("/billing/webhook", init);
  const withHeader = (value: string | undefined) => {
    const { headers, ...rest } = desk.stripe.signed(event);
    const { "stripe-signature": _, ...others } = headers as Record<string, string>;
    return { ...rest, headers: value === undefined ? others : { ...others, "stripe-signature": value } };
  };
  const signature = (init: RequestInit) => (init.headers as Record<string, string>)["stripe-signature"] ?? "";

  const forged: [string, () => RequestInit][] = [
    ["signed with another secret", () => desk.stripe.signed(event, { secret: "whsec_other" })],
    ["signed with no secret", () => desk.stripe.signed(event, { secret: "" })],
    ["changed after it was signed", () => ({ ...desk.stripe.signed(event), body: JSON.stringify(event) })],
    ["without a signature", () => withHeader(undefined)],
    ["with an empty signature", () => withHeader("")],
    ["with nonsense for a signature", () => withHeader("t=x,v1=é,v0")],
    [
      "with a signature of another scheme",
      () => withHeader(signature(desk.stripe.signed(event)).replace("v1=", "v0=")),
    ],
    [
      "with the signature of another moment",
      () => withHeader(signature(desk.stripe.signed(event)).replace(/^t=\d/, "t=2")),
    ],
    ["signed 301 seconds ago", () => desk.stripe.signed(event, { at: desk.app.now() - 301 })],
    ["without a body", () => ({ ...desk.stripe.signed(event), body: "" })],
  ];
  test.each(forged)("an event %s is refused, and does nothing", async (_name, init) => {
    const answer = await send(init());
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_signature"]);
    expect((await desk.me()).plan).toBe("free");
  });

  test("what is signed but no event is refused", async () => {
    for (const body of ["{ not json", "[]", "7", "null", '"text"', "{}", '{"type":"invoice.paid"}'])
      expect([body, (await send(desk.stripe.signed(body))).status]).toEqual([body, 422]);
  });

  test("an event of more than 256 KB is refused", async () => {
    const answer = await send(desk.stripe.signed(JSON.stringify({ pad: "x".repeat(262_144) })));
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      413,
      "payload_too_large",
      "The request body is larger than 256 KB.",
    ]);
  });

  test("an event needs neither a key nor a cookie, and a wrong one does not matter", async () => {
    const init = desk.stripe.signed(desk.stripe.event("balance.available", { id: "b" }));
    const answer = await send({ ...init, headers: { ...(init.headers as object), "x-api-key": "wrong" } });
    expect([answer.status, answer.body]).toEqual([200, { received: true }]);
  });
});

test("an event that was signed 300 seconds ago counts", async () => {
  await using desk = await billingDesk();
  const [event] = desk.stripe.pay(await desk.page("/billing/checkout")) as [StripeEvent];
  const init = desk.stripe.signed(event, { at: desk.app.now() - 300 });
  expect((await desk.request("/billing/webhook", init)).status).toBe(200);
  expect((await desk.me()).plan).toBe("pro");
});

describe("what means nothing here is fine", () => {
  test("other types, other people's customers, and events about nobody", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const before = await stateOf(desk);
    const asked = desk.stripe.calls.length;
    for (const event of [
      desk.stripe.event("product.created", { id: "prod_1", object: "product" }),
      desk.stripe.event("toString", { id: "x", customer: desk.stripe.customers[0]?.id }),
      desk.stripe.event("customer.subscription.deleted", { id: "sub_x", customer: "cus_unknown" }),
      desk.stripe.event("customer.subscription.deleted", { id: "sub_x", customer: null }),
      desk.stripe.event("checkout.session.completed", { id: "cs_x", mode: "payment", customer: null }),
      desk.stripe.event("charge.refunded", {
        id: "ch_x",
        customer: desk.stripe.customers[0]?.id,
        payment_intent: null,
      }),
      desk.stripe.event("invoice.paid", {}),
    ])
      expect([event.type, (await desk.deliver(event)).status]).toEqual([event.type, 200]);
    expect(await stateOf(desk)).toEqual(before);
    expect(desk.stripe.calls).toHaveLength(asked);
  });

  test("a payment of the same customer for something else gives no credits", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const url = await desk.page("/billing/topup");
    const [session] = desk.stripe.sessions;
    Object.assign(session as object, { metadata: {} });
    await desk.deliver(...desk.stripe.pay(url));
    await desk.deliver(desk.stripe.refund(url, 100));
    expect((await desk.me()).credits.topup).toBe(0);
  });

  test("an event of one account does nothing to another", async () => {
    await using desk = await billingDesk();
    const bob = await desk.as("bob@example.com");
    await desk.subscribe();
    expect((await bob.get("/auth/me")).body.plan).toBe("free");
  });
});

describe("however they come", () => {
  test("in every order they lead to the same", async () => {
    const orders = [
      [0, 1, 2, 3, 4],
      [4, 3, 2, 1, 0],
      [3, 0, 4, 1, 2],
      [2, 4, 0, 3, 1],
    ];
    for (const order of orders) {
      await using desk = await billingDesk();
      const paid = desk.stripe.pay(await desk.page("/billing/checkout"));
      const changed = desk.stripe.change(held(desk), { price: PRICES.price_team_month });
      const ended = desk.stripe.change(held(desk), { status: "canceled" });
      const events = [...paid, changed, ended];
      // All of them are told only now: what they say of the past is old.
      for (const index of order) expect((await desk.deliver(events[index] as StripeEvent)).status).toBe(200);
      expect([order, (await desk.me()).plan]).toEqual([order, "free"]);
    }
  });

  test("an old event that comes late does not bring back what has ended", async () => {
    await using desk = await billingDesk();
    const [completed, created, paid] = desk.stripe.pay(await desk.page("/billing/checkout"));
    await desk.deliver(completed as StripeEvent);
    await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }));
    await desk.deliver(created as StripeEvent, paid as StripeEvent);
    expect((await desk.me()).plan).toBe("free");
  });

  test("twice they count once, and Stripe is asked once", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const [event] = desk.stripe.pay(await desk.page("/billing/topup")) as [StripeEvent];
    await desk.deliver(event, event);
    const asked = desk.stripe.calls.length;
    expect((await desk.deliver(event)).status).toBe(200);
    expect(desk.stripe.calls).toHaveLength(asked);
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("another event about the same payment gives no second pack", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const [event] = desk.stripe.pay(await desk.page("/billing/topup")) as [StripeEvent];
    const again = desk.stripe.event("checkout.session.async_payment_succeeded", event.data.object);
    await desk.deliver(event, again);
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("ten at the same time, each twice, lead to one plan and each pack once", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const packs: StripeEvent[] = [];
    for (let count = 0; count < 3; count += 1)
      packs.push(...desk.stripe.pay(await desk.page("/billing/topup")));
    const plan = desk.stripe.pay(await desk.page("/billing/checkout", { plan: "team" }));
    const all = [...packs, ...plan, ...plan, ...packs];
    const answers = await Promise.all(all.map((event) => desk.deliver(event)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await desk.me()).toMatchObject({ plan: "team", credits: { allowance: 10_000, topup: 3_000 } });
    expect(await eventIds(desk)).toHaveLength(packs.length + plan.length);
  });

  const writes = [
    ["users", "update", "/billing/checkout"],
    ["billing_accounts", "update", "/billing/checkout"],
    ["billing_events", "insert", "/billing/checkout"],
    ["ledger", "insert", "/billing/topup"],
    ["billing_events", "insert", "/billing/topup"],
  ] as const;
  test.each(writes)(
    "if the write to %s (%s) fails, an event of %s leaves nothing, and counts when it is sent again",
    async (table, verb, path) => {
      await using desk = await billingDesk({ plans: { default: "pro" } });
      const [event] = desk.stripe.pay(await desk.page(path, { plan: "team" })) as [StripeEvent];
      const before = await stateOf(desk);
      const when = sql.raw(`before ${verb} on ${table}`);
      await sql`create trigger broken ${when} begin select raise(abort, 'broken'); end`.execute(desk.app.db);
      expect((await desk.deliver(event)).status).toBe(500);
      expect(await stateOf(desk)).toEqual(before);
      await sql`drop trigger broken`.execute(desk.app.db);
      expect((await desk.deliver(event)).status).toBe(200);
      const { plan, credits } = await desk.me();
      expect([plan, credits.topup]).toEqual(path === "/billing/topup" ? ["pro", 1_000] : ["team", 0]);
    },
  );

  test("while Stripe cannot be asked they are refused, so that they are sent again", async () => {
    await using desk = await billingDesk();
    const [event] = desk.stripe.pay(await desk.page("/billing/checkout")) as [StripeEvent];
    desk.stripe.first = () =>
      Response.json({ error: {} }, { status: 500, headers: { "stripe-should-retry": "false" } });
    const answer = await desk.deliver(event);
    expect([answer.status, answer.body.code, await eventIds(desk)]).toEqual([503, "unavailable", []]);
    desk.stripe.first = () => undefined;
    expect((await desk.deliver(event)).status).toBe(200);
    expect((await desk.me()).plan).toBe("pro");
  });
});

describe("what a subscription means", () => {
  test.each([
    ["trialing", "pro"],
    ["past_due", "pro"],
    ["unpaid", "free"],
    ["incomplete", "free"],
    ["paused", "free"],
    ["incomplete_expired", "free"],
  ])("one that is %s gives the plan %s", async (status, plan) => {
    await using desk = await billingDesk();
    await desk.subscribe();
    await desk.deliver(desk.stripe.change(held(desk), { status }));
    expect((await desk.me()).plan).toBe(plan);
    await desk.deliver(desk.stripe.change(held(desk), { status: "active" }));
    expect((await desk.me()).plan).toBe("pro");
  });

  test.each(["paused", "unpaid", "incomplete"])(
    "one that is %s is not joined by a second one",
    async (status) => {
      await using desk = await billingDesk();
      await desk.subscribe();
      await desk.deliver(desk.stripe.change(held(desk), { status }));
      const { body } = await desk.ada.post("/billing/checkout", { plan: "pro" });
      expect([body.code, body.fix]).toEqual([
        "already_subscribed",
        expect.stringContaining("/billing/portal"),
      ]);
    },
  );

  test("a plan holds as soon as Stripe says so: up, straight back, and up again", async () => {
    await using desk = await billingDesk({ plans: { pro: { credits: 3 }, team: { credits: 5 } } });
    await desk.subscribe();
    const seen = [];
    for (const price of [PRICES.price_team_month, PRICES.price_pro_month, PRICES.price_team_month]) {
      await desk.deliver(desk.stripe.change(held(desk), { price }));
      await spend(desk, 1);
      const { plan, credits } = await desk.me();
      seen.push([plan, credits.allowance, credits.remaining]);
    }
    expect(seen).toEqual([
      ["team", 5, 4],
      ["pro", 3, 1],
      ["team", 5, 2],
    ]);
  });

  test("what is used beyond the smaller plan stays used, and is not owed", async () => {
    await using desk = await billingDesk({ plans: { pro: { credits: 3 }, team: { credits: 5 } } });
    await desk.subscribe({ plan: "team" });
    await spend(desk, 4);
    await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_pro_month }));
    expect((await desk.me()).credits).toMatchObject({ allowance: 4, remaining: 0 });
    desk.clock.advance("30d");
    await desk.deliver(...desk.stripe.renew(held(desk)));
    expect((await desk.me()).credits).toMatchObject({ allowance: 3, remaining: 3 });
  });

  test("another interval begins another period, in which what was used stays used", async () => {
    await using desk = await billingDesk({ plans: { pro: { credits: 5 }, team: { credits: 9 } } });
    await desk.subscribe();
    await spend(desk, 2);
    const left = async () => (await desk.me()).credits.remaining;
    const turns = [PRICES.price_pro_year, PRICES.price_pro_month, PRICES.price_pro_year];
    for (const [index, price] of turns.entries()) {
      desk.clock.advance("1h");
      await desk.deliver(desk.stripe.restart(held(desk), price));
      expect([price, (await desk.me()).credits.resets_at]).toEqual([price, monthAfter(desk, price)]);
      expect([price, await left()]).toEqual([price, 3 - index]);
      await spend(desk, 1);
    }
    // Nor does a larger plan, or the way back from it, forget what was carried over.
    desk.clock.advance("1h");
    await desk.deliver(desk.stripe.restart(held(desk), PRICES.price_team_month));
    expect(await left()).toBe(4);
    await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_pro_month }));
    expect(await left()).toBe(0);
    desk.clock.advance("30d");
    await desk.deliver(...desk.stripe.renew(held(desk)));
    expect(await left()).toBe(5);
  });

  test("what was used is not forgotten on the way over a smaller plan either", async () => {
    await using desk = await billingDesk({ plans: { pro: { credits: 3 }, team: { credits: 5 } } });
    await desk.subscribe({ plan: "team" });
    await spend(desk, 5);
    for (const price of [PRICES.price_pro_year, PRICES.price_team_month, PRICES.price_team_year]) {
      desk.clock.advance("1h");
      await desk.deliver(desk.stripe.restart(held(desk), price));
      expect([price, (await desk.me()).credits.remaining]).toEqual([price, 0]);
    }
  });

  test.each(["paused", "unpaid"])(
    "one that was %s comes back with what was used, also when its interval changed meanwhile",
    async (status) => {
      await using desk = await billingDesk({ plans: { free: { credits: 1 }, pro: { credits: 5 } } });
      await desk.subscribe();
      await spend(desk, 4);
      desk.clock.advance("1h");
      await desk.deliver(desk.stripe.change(held(desk), { status }));
      await spend(desk, 1);
      expect(await desk.me()).toMatchObject({ plan: "free", credits: { remaining: 0 } });
      desk.clock.advance("1h");
      desk.stripe.change(held(desk), { status: "active" });
      await desk.deliver(desk.stripe.restart(held(desk), PRICES.price_pro_year));
      expect(await desk.me()).toMatchObject({ plan: "pro", credits: { remaining: 1 } });
      desk.clock.advance("31d");
      expect((await desk.me()).credits.remaining).toBe(5);
    },
  );

  test("while one rests the operator's plan stays, and its return counts", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    for (const [status, plan] of [
      ["paused", "free"],
      ["active", "pro"],
    ] as const) {
      await desk.deliver(desk.stripe.change(held(desk), { status }));
      expect([status, (await desk.me()).plan]).toEqual([status, plan]);
      await setPlan(desk.app, { email: "ada@example.com", plan: "team" });
      const { customer } = held(desk);
      await desk.deliver(desk.stripe.event("invoice.paid", { id: "in_x", customer }));
      expect([status, (await desk.me()).plan]).toEqual([status, "team"]);
    }
  });

  test("a period that ended in its time leaves nothing to the next one, early or late", async () => {
    await using desk = await billingDesk({ plans: { pro: { credits: 5 } } });
    await desk.subscribe();
    for (const wait of ["2591999s", "2678400s"]) {
      await spend(desk, 2);
      desk.clock.advance(wait);
      await desk.deliver(...desk.stripe.renew(held(desk)));
      expect([wait, (await desk.me()).credits.remaining]).toEqual([wait, 5]);
    }
  });

  test("of two the larger counts, and the end of one leaves the other", async () => {
    await using desk = await billingDesk();
    await desk.subscribe({ plan: "team" });
    const team = held(desk);
    const pro = structuredClone(team);
    pro.id = "sub_other";
    desk.stripe.subscriptions.unshift(pro);
    await desk.deliver(desk.stripe.change(pro, { price: PRICES.price_pro_month }));
    expect((await desk.me()).plan).toBe("team");
    await desk.deliver(desk.stripe.change(team, { status: "canceled" }));
    expect((await desk.me()).plan).toBe("pro");
  });

  test("one for something that is not sold here is nobody's business", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const other = structuredClone(held(desk));
    Object.assign(other, { id: "sub_other", metadata: {} });
    desk.stripe.subscriptions.unshift(other);
    expect((await desk.deliver(desk.stripe.change(other, { price: "price_Other" }))).status).toBe(200);
    expect((await desk.me()).plan).toBe("pro");
  });

  test("a price goes on to stand for what it was sold as, when new ones are sold at another", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    desk.app.config.billing.price_pro_month = "price_Dearer";
    desk.clock.advance("30d");
    expect((await desk.deliver(...desk.stripe.renew(held(desk)))).status).toBe(200);
    expect(await desk.me()).toMatchObject({ plan: "pro", credits: { period_start: desk.app.now() } });
    await desk.deliver(desk.stripe.change(held(desk), { status: "paused" }));
    expect((await desk.me()).plan).toBe("free");
    await desk.deliver(desk.stripe.change(held(desk), { status: "active" }));
    expect((await desk.me()).plan).toBe("pro");
    await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }));
    expect((await desk.me()).plan).toBe("free");
  });

  test("a plan that the operator gave stays while no subscription begins or ends", async () => {
    await using desk = await billingDesk();
    await desk.page("/billing/checkout");
    await setPlan(desk.app, { email: "ada@example.com", plan: "team" });
    const customer = desk.stripe.customers[0]?.id;
    await desk.deliver(desk.stripe.event("invoice.paid", { id: "in_x", customer }));
    expect((await desk.me()).plan).toBe("team");
  });

  test.each(["team", "free"] as const)(
    "the plan %s from the operator stays beside a subscription, until that changes",
    async (plan) => {
      await using desk = await billingDesk();
      await desk.subscribe();
      await setPlan(desk.app, { email: "ada@example.com", plan });
      desk.clock.advance("30d");
      await desk.deliver(...desk.stripe.renew(held(desk)));
      await desk.deliver(desk.stripe.change(held(desk), { cancel_at_period_end: true }));
      await desk.ada.post("/billing/checkout");
      expect((await desk.me()).plan).toBe(plan);
      await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_team_month }));
      expect((await desk.me()).plan).toBe("team");
      await setPlan(desk.app, { email: "ada@example.com", plan: "pro" });
      await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }));
      expect((await desk.me()).plan).toBe("free");
    },
  );

  test("another one for the same plan counts, also if nobody told of the end of the first", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    await setPlan(desk.app, { email: "ada@example.com", plan: "free" });
    const again = structuredClone(held(desk));
    desk.stripe.change(held(desk), { status: "canceled" });
    again.id = "sub_again";
    desk.stripe.subscriptions.unshift(again);
    await desk.deliver(desk.stripe.event("customer.subscription.created", again));
    expect((await desk.me()).plan).toBe("pro");
  });

  test("its end leads to the plan of new accounts", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    await desk.subscribe({ plan: "team" });
    await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }));
    expect((await desk.me()).plan).toBe("pro");
  });

  test("a customer that is deleted at Stripe has no plan and no account there any more", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const [customer] = desk.stripe.customers;
    Object.assign(customer as object, { deleted: true });
    await desk.deliver(desk.stripe.event("customer.deleted", customer as object));
    expect((await desk.me()).plan).toBe("free");
    expect((await stateOf(desk)).accounts).toEqual([]);
  });

  test("a subscription by the year has its credits by the month", async () => {
    await using desk = await billingDesk();
    await desk.subscribe({ interval: "year" });
    const start = desk.app.now();
    expect((await stateOf(desk)).accounts).toMatchObject([
      { interval: "year", period_start: start, period_end: start + 365 * 86_400 },
    ]);
    expect((await desk.me()).credits.resets_at).toBeLessThan(start + 32 * 86_400);
  });
});

describe("a price that the settings do not name, or not rightly,", () => {
  const mistype = ({ app }: BillingDesk): void => {
    app.config.billing.price_pro_month = "price_Mistyped";
  };
  const mend = ({ app }: BillingDesk): void => {
    app.config.billing.price_pro_month = PRICES.price_pro_month;
  };

  test("has Stripe send the events again, which count once the setting is right", async () => {
    await using desk = await billingDesk();
    const logged = logOf(desk);
    const events = desk.stripe.pay(await desk.page("/billing/checkout"));
    mistype(desk);
    for (const event of events) expect((await desk.deliver(event)).body.code).toBe("unavailable");
    expect([(await desk.me()).plan, await eventIds(desk)]).toEqual(["free", []]);
    expect(JSON.stringify(logged)).toContain(PRICES.price_pro_month);
    mend(desk);
    for (const event of events) expect((await desk.deliver(event)).status).toBe(200);
    expect((await desk.me()).plan).toBe("pro");
  });

  test("sells no second subscription meanwhile", async () => {
    await using desk = await billingDesk();
    desk.stripe.pay(await desk.page("/billing/checkout"));
    mistype(desk);
    const answer = await desk.ada.post("/billing/checkout", { plan: "team" });
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      503,
      "unavailable",
      "Your subscription has a price that this server does not know.",
    ]);
    expect(desk.stripe.sessions).toHaveLength(1);
    mend(desk);
    expect(await desk.page("/billing/checkout", { plan: "team" })).toStartWith("https://billing.stripe.com/");
  });

  test("takes no plan away, and keeps nobody from cancelling", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const changed = desk.stripe.change(held(desk), { price: "price_Unknown" });
    expect((await desk.deliver(changed)).status).toBe(503);
    expect((await desk.me()).plan).toBe("pro");
    expect(await desk.page("/billing/portal")).toStartWith("https://billing.stripe.com/");
    expect((await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }), changed)).status).toBe(
      200,
    );
    expect((await desk.me()).plan).toBe("free");
  });
});

describe("packs of credits", () => {
  test("one that is not paid yet gives nothing until it is", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const events = desk.stripe.pay(await desk.page("/billing/topup"), "unpaid");
    await desk.deliver(...events);
    expect((await desk.me()).credits.topup).toBe(0);
    const [session] = desk.stripe.sessions;
    Object.assign(session as object, { payment_status: "paid" });
    await desk.deliver(desk.stripe.event("checkout.session.async_payment_succeeded", session as object));
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("what is refunded is taken back, part by part", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const url = await desk.page("/billing/topup");
    await desk.deliver(...desk.stripe.pay(url));
    const first = desk.stripe.refund(url, 250);
    await desk.deliver(first, first);
    expect((await desk.me()).credits.topup).toBe(750);
    // Both are told at once, in the wrong order.
    const second = desk.stripe.refund(url, 333);
    const third = desk.stripe.refund(url, 417);
    await desk.deliver(third, second);
    expect((await desk.me()).credits.topup).toBe(0);
  });

  test("a refund that is told before the payment leaves the rest", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const url = await desk.page("/billing/topup");
    const paid = desk.stripe.pay(url);
    await desk.deliver(desk.stripe.refund(url, 400), ...paid);
    expect((await desk.me()).credits.topup).toBe(600);
  });

  test("one that a bank takes back is gone while that is open and once it is lost, and back when it is won", async () => {
    for (const [end, credits] of [
      ["lost", 0],
      ["won", 750],
    ] as const) {
      await using desk = await billingDesk({ plans: { default: "pro" } });
      const url = await desk.page("/billing/topup");
      const paid = desk.stripe.pay(url);
      await desk.deliver(...paid, desk.stripe.refund(url, 250));
      await desk.deliver(desk.stripe.dispute(url, "needs_response"));
      expect((await desk.me()).credits.topup).toBe(0);
      const closed = desk.stripe.dispute(url, end);
      await desk.deliver(closed, closed);
      expect([end, (await desk.me()).credits.topup]).toEqual([end, credits]);
      // And so it may go on: each turn counts once.
      await desk.deliver(desk.stripe.dispute(url, "needs_response"));
      expect((await desk.me()).credits.topup).toBe(0);
      await desk.deliver(desk.stripe.dispute(url, end), ...paid);
      expect([end, (await desk.me()).credits.topup]).toEqual([end, credits]);
    }
  });

  test("of what a bank takes back and returns, only what was left to be taken comes back", async () => {
    await using desk = await billingDesk({ plans: { default: "pro", pro: { credits: 0 } } });
    desk.app.config.billing.topup_credits = 3;
    const url = await desk.page("/billing/topup");
    await desk.deliver(...desk.stripe.pay(url));
    await spend(desk, 2);
    await desk.deliver(desk.stripe.dispute(url, "needs_response"));
    expect((await desk.me()).credits.topup).toBe(0);
    await desk.deliver(desk.stripe.dispute(url, "won"));
    expect((await desk.me()).credits.topup).toBe(1);
  });

  test("a bank's question takes nothing, nor does a dispute about something else", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const url = await desk.page("/billing/topup");
    await desk.deliver(...desk.stripe.pay(url));
    const unknown = { id: "du_x", object: "dispute", payment_intent: "pi_other" };
    for (const event of [
      desk.stripe.dispute(url, "warning_needs_response"),
      desk.stripe.event("charge.dispute.created", unknown),
      desk.stripe.event("charge.dispute.created", { ...unknown, payment_intent: null }),
    ])
      expect((await desk.deliver(event)).status).toBe(200);
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("what is spent already is not asked for, also of a later pack", async () => {
    await using desk = await billingDesk({ plans: { default: "pro", pro: { credits: 0 } } });
    desk.app.config.billing.topup_credits = 3;
    const url = await desk.page("/billing/topup");
    await desk.deliver(...desk.stripe.pay(url));
    for (let run = 0; run < 2; run += 1) await desk.ada.post("/v1/messages", { instruction: "Spend" });
    expect((await desk.me()).credits.topup).toBe(1);
    await desk.deliver(desk.stripe.refund(url, 500));
    expect((await desk.me()).credits.topup).toBe(0);
    await desk.deliver(...desk.stripe.pay(await desk.page("/billing/topup")));
    expect((await desk.me()).credits.topup).toBe(3);
    await desk.deliver(desk.stripe.refund(url, 1));
    expect((await desk.me()).credits.topup).toBe(3);
    await desk.deliver(desk.stripe.refund(url, 499));
    expect((await desk.me()).credits.topup).toBe(2);
  });
});

function held({ stripe }: BillingDesk) {
  const [subscription] = stripe.subscriptions;
  if (!subscription) throw new Error("There is no subscription");
  return subscription;
}

/** In finished runs. */
async function spend({ ada }: BillingDesk, credits: number): Promise<void> {
  for (let run = 0; run < credits; run += 1)
    expect((await ada.post("/v1/messages", { instruction: "Spend" })).status).toBe(200);
}

/** When the credits of a period that begins now are renewed. */
function monthAfter({ app }: BillingDesk, price: string): number {
  return app.now() + (price === PRICES.price_pro_year ? 31 : 30) * 86_400;
}

/** Whatever is logged from now on. */
function logOf({ app }: BillingDesk): unknown[] {
  const lines: unknown[] = [];
  const keep = (...line: unknown[]): void => void lines.push(line);
  Object.assign(app.log, { error: keep, warn: keep, info: keep });
  return lines;
}

async function eventIds({ app }: BillingDesk): Promise<string[]> {
  return (await app.db.selectFrom("billing_events").select("id").execute()).map(({ id }) => id);
}

/** All that an event may change. */
async function stateOf({ app }: BillingDesk) {
  return {
    users: await app.db.selectFrom("users").selectAll().execute(),
    accounts: await app.db.selectFrom("billing_accounts").selectAll().execute(),
    events: await app.db.selectFrom("billing_events").selectAll().execute(),
    ledger: await app.db.selectFrom("ledger").selectAll().execute(),
  };
}
