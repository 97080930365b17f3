import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "kysely";
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

  test("neither a key nor a cookie is needed, and a wrong one does not matter", async () => {
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

  test("a smaller plan begins when the period that is paid for has ended", async () => {
    await using desk = await billingDesk();
    await desk.subscribe({ plan: "team" });
    await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_pro_month }));
    expect((await desk.me()).plan).toBe("team");
    desk.clock.advance("30d");
    await desk.deliver(...desk.stripe.renew(held(desk)));
    expect(await desk.me()).toMatchObject({ plan: "pro", credits: { allowance: 2_000 } });
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

  test("a price that no setting names changes nothing", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    await desk.deliver(desk.stripe.change(held(desk), { price: "price_Old" }));
    expect((await desk.me()).plan).toBe("pro");
    await desk.deliver(desk.stripe.change(held(desk), { status: "canceled" }));
    expect((await desk.me()).plan).toBe("free");
  });

  test("a plan that the operator gave stays while no subscription begins or ends", async () => {
    await using desk = await billingDesk();
    await desk.page("/billing/checkout");
    await desk.app.db.updateTable("users").set({ plan: "team" }).execute();
    const customer = desk.stripe.customers[0]?.id;
    await desk.deliver(desk.stripe.event("invoice.paid", { id: "in_x", customer }));
    expect((await desk.me()).plan).toBe("team");
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
