import { describe, expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { type BillingDesk, billingDesk } from "../support/billing-desk.ts";
import { PRICES, STRIPE_KEY, STRIPE_WEBHOOK_SECRET } from "../support/stripe-stand-in.ts";

const PAID_ROUTES = ["/billing/checkout", "/billing/topup", "/billing/portal"];

test("an account subscribes, gets its plan and period, buys credits, manages, cancels, and is on Free in the end", async () => {
  await using desk = await billingDesk();
  expect((await desk.me()).plan).toBe("free");
  const url = await desk.page("/billing/checkout");
  expect(url).toStartWith("https://checkout.stripe.com/");
  expect((await desk.me()).plan).toBe("free");
  await desk.deliver(...desk.stripe.pay(url));
  const start = desk.app.now();
  expect(await desk.me()).toMatchObject({
    plan: "pro",
    credits: { allowance: 2_000, topup: 0, period_start: start, resets_at: start + 30 * 86_400 },
  });
  await desk.deliver(...desk.stripe.pay(await desk.page("/billing/topup")));
  expect((await desk.me()).credits).toMatchObject({ topup: 1_000, remaining: 3_000 });
  expect(await desk.page("/billing/portal")).toStartWith("https://billing.stripe.com/p/session/");
  const subscription = held(desk);
  desk.clock.advance("30d");
  await desk.deliver(...desk.stripe.renew(subscription));
  expect((await desk.me()).credits).toMatchObject({ period_start: start + 30 * 86_400 });
  await desk.deliver(desk.stripe.change(subscription, { cancel_at_period_end: true }));
  expect((await desk.me()).plan).toBe("pro");
  expect((await accounts(desk))[0]).toMatchObject({ status: "active", cancel_at_period_end: 1 });
  desk.clock.advance("30d");
  await desk.deliver(desk.stripe.change(subscription, { status: "canceled" }));
  // What was bought stays.
  expect(await desk.me()).toMatchObject({ plan: "free", credits: { allowance: 100, topup: 1_000 } });
  expect((await accounts(desk))[0]).toMatchObject({ subscription_id: null, period_end: null });
  await desk.subscribe({ plan: "team", interval: "year" });
  expect((await desk.me()).plan).toBe("team");
});

describe("where no payments are taken", () => {
  test.each([...PAID_ROUTES, "/billing/webhook"])("POST %s says which settings are missing", async (path) => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const answer = await ada.post(path);
    expect([answer.status, answer.body.code]).toEqual([400, "billing_not_configured"]);
    expect(answer.body.detail).toContain("billing.stripe_secret_key");
    expect(answer.body.detail).toContain("billing.stripe_webhook_secret");
  });

  test("a price that is not set is named, and only that", async () => {
    await using desk = await billingDesk();
    Object.assign(desk.app.config.billing, { price_team_year: "", price_topup: "" });
    const year = await desk.ada.post("/billing/checkout", { plan: "team", interval: "year" });
    expect([year.status, year.body.detail]).toEqual([
      400,
      "This server takes no payments: billing.price_team_year is not set.",
    ]);
    expect((await desk.ada.post("/billing/topup")).body.detail).toContain("billing.price_topup is not set");
    expect((await desk.ada.post("/billing/checkout", { plan: "team" })).status).toBe(200);
  });

  test("a new account has the largest plan, and the Free one where payments are taken", async () => {
    await using t = await testApp();
    expect((await t.as("ada@example.com")).user.plan).toBe("team");
    await using desk = await billingDesk();
    expect(desk.ada.user.plan).toBe("free");
    await using chosen = await billingDesk({ plans: { default: "pro" } });
    expect(chosen.ada.user.plan).toBe("pro");
  });
});

describe("checkout", () => {
  test.each([
    [undefined, PRICES.price_pro_month],
    [{}, PRICES.price_pro_month],
    [{ interval: "year" }, PRICES.price_pro_year],
    [{ plan: "team" }, PRICES.price_team_month],
    [{ plan: "team", interval: "year" }, PRICES.price_team_year],
  ])("of %j is for the price %s", async (body, price) => {
    await using desk = await billingDesk();
    await desk.page("/billing/checkout", body);
    expect(desk.stripe.sessions).toMatchObject([{ price, mode: "subscription", status: "open" }]);
    expect(desk.stripe.customers).toMatchObject([{ email: "ada@example.com" }]);
  });

  test("takes only plans and intervals that there are", async () => {
    await using desk = await billingDesk();
    for (const [body, path] of [
      [{ plan: "free" }, "body.plan"],
      [{ plan: null }, "body.plan"],
      [{ plan: 7 }, "body.plan"],
      [{ interval: "week" }, "body.interval"],
    ] as const) {
      const { status, body: answer } = await desk.ada.post("/billing/checkout", body);
      expect([body, status, answer.errors?.[0]?.path]).toEqual([body, 422, path]);
    }
    expect(desk.stripe.calls).toEqual([]);
  });

  test("of the plan that the account has is refused", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    for (const interval of ["month", "year"]) {
      const answer = await desk.ada.post("/billing/checkout", { plan: "pro", interval });
      expect([answer.status, answer.body.code]).toEqual([409, "already_subscribed"]);
    }
  });

  test("of a smaller plan than the operator gave is refused, of a larger one is not", async () => {
    await using desk = await billingDesk({ plans: { default: "team" } });
    expect((await desk.ada.post("/billing/checkout")).body.code).toBe("already_subscribed");
    expect(desk.stripe.calls).toEqual([]);
    await desk.app.db.updateTable("users").set({ plan: "pro" }).execute();
    expect((await desk.ada.post("/billing/checkout", { plan: "team" })).status).toBe(200);
  });

  test("of another plan leads to the page on which the subscription changes, not to a second one", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const url = await desk.page("/billing/checkout", { plan: "team" });
    expect(url).toStartWith("https://billing.stripe.com/");
    const form = new URLSearchParams(desk.stripe.calls.at(-1)?.body);
    expect(form.get("flow_data[subscription_update_confirm][items][0][price]")).toBe(PRICES.price_team_month);
    await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_team_month }));
    expect(await desk.me()).toMatchObject({ plan: "team", credits: { allowance: 10_000 } });
  });

  test("of the larger plan again is possible after a smaller one, which is not sold twice", async () => {
    await using desk = await billingDesk();
    await desk.subscribe({ plan: "team" });
    await desk.deliver(desk.stripe.change(held(desk), { price: PRICES.price_pro_month }));
    expect((await desk.ada.post("/billing/checkout", { plan: "pro" })).body.code).toBe("already_subscribed");
    const url = await desk.page("/billing/checkout", { plan: "team" });
    expect(url).toStartWith("https://billing.stripe.com/");
  });

  test("two at once make one customer, and leave one page to pay on", async () => {
    await using desk = await billingDesk();
    const answers = await Promise.all([
      desk.ada.post("/billing/checkout"),
      desk.ada.post("/billing/checkout"),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(desk.stripe.customers).toHaveLength(1);
    expect(desk.stripe.sessions.map(({ status }) => status)).toEqual(["expired", "open"]);
  });

  test("sees what is paid on another page in the same moment, and sells nothing twice", async () => {
    await using desk = await billingDesk();
    const url = await desk.page("/billing/checkout");
    desk.stripe.first = ({ path }) => {
      if (path.endsWith("/expire")) desk.stripe.pay(url);
      return undefined;
    };
    const answer = await desk.ada.post("/billing/checkout", { plan: "pro" });
    expect([answer.status, answer.body.code]).toEqual([409, "already_subscribed"]);
    expect((await desk.me()).plan).toBe("pro");
  });

  test("minds no page that ends by itself in the same moment, and one that does not end", async () => {
    await using desk = await billingDesk();
    await desk.page("/billing/checkout");
    const [session] = desk.stripe.sessions;
    desk.stripe.first = ({ path }) => {
      if (path.endsWith("/expire")) Object.assign(session as object, { status: "expired" });
      return undefined;
    };
    await desk.page("/billing/checkout");
    desk.stripe.first = ({ path }) =>
      path.endsWith("/expire")
        ? Response.json({ error: { type: "invalid_request_error", message: "No" } }, { status: 400 })
        : undefined;
    expect((await desk.ada.post("/billing/checkout")).body.code).toBe("unavailable");
    expect(desk.stripe.sessions.map(({ status }) => status)).toEqual(["expired", "open"]);
  });

  test("finds a subscription that nobody has told of yet", async () => {
    await using desk = await billingDesk();
    const events = desk.stripe.pay(await desk.page("/billing/checkout"));
    expect((await desk.ada.post("/billing/checkout")).body.code).toBe("already_subscribed");
    expect((await desk.me()).plan).toBe("pro");
    await desk.deliver(...events);
    expect((await desk.me()).plan).toBe("pro");
  });

  test("makes a new customer where the old one was deleted at Stripe", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    const [customer] = desk.stripe.customers;
    Object.assign(customer as object, { deleted: true });
    expect((await desk.ada.post("/billing/checkout")).status).toBe(200);
    expect((await desk.me()).plan).toBe("free");
    expect((await accounts(desk)).map(({ customer_id }) => customer_id)).toEqual([
      desk.stripe.customers[1]?.id as string,
    ]);
  });
});

test("with the key of another account of Stripe's nobody loses a plan", async () => {
  await using desk = await billingDesk();
  await desk.subscribe();
  const error = { type: "invalid_request_error", code: "resource_missing", message: "No such customer" };
  desk.stripe.first = () => Response.json({ error }, { status: 404 });
  expect((await desk.ada.post("/billing/checkout", { plan: "team" })).body.code).toBe("unavailable");
  expect((await desk.deliver(...desk.stripe.renew(held(desk)))).status).toBe(503);
  expect([(await desk.me()).plan, (await accounts(desk)).length]).toEqual(["pro", 1]);
});

describe("top-up and portal", () => {
  test("credits can be bought on paid plans only", async () => {
    await using desk = await billingDesk();
    const answer = await desk.ada.post("/billing/topup");
    expect([answer.status, answer.body.code, answer.body.required_plan]).toEqual([
      403,
      "plan_required",
      "pro",
    ]);
    expect(desk.stripe.calls).toEqual([]);
  });

  test("an account whose plan the operator gave can buy credits", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    await desk.deliver(...desk.stripe.pay(await desk.page("/billing/topup")));
    expect(await desk.me()).toMatchObject({ plan: "pro", credits: { topup: 1_000 } });
  });

  test("credits are bought as a new customer where the old one was deleted at Stripe", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    await desk.page("/billing/topup");
    Object.assign(desk.stripe.customers[0] as object, { deleted: true });
    await desk.deliver(...desk.stripe.pay(await desk.page("/billing/topup")));
    expect(await desk.me()).toMatchObject({ plan: "pro", credits: { topup: 1_000 } });
    expect(desk.stripe.customers).toHaveLength(2);
  });

  test("nobody buys credits on a plan that went with the customer at Stripe", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    Object.assign(desk.stripe.customers[0] as object, { deleted: true });
    Object.assign(held(desk), { status: "canceled" });
    expect((await desk.ada.post("/billing/topup")).body.code).toBe("plan_required");
    expect((await desk.me()).plan).toBe("free");
  });

  test("a pack holds what it held when its page was opened", async () => {
    await using desk = await billingDesk({ plans: { default: "pro" } });
    const url = await desk.page("/billing/topup");
    desk.app.config.billing.topup_credits = 5;
    await desk.deliver(...desk.stripe.pay(url));
    expect((await desk.me()).credits.topup).toBe(1_000);
  });

  test("the portal is for accounts that have paid", async () => {
    await using desk = await billingDesk();
    const answer = await desk.ada.post("/billing/portal");
    expect([answer.status, answer.body.code]).toEqual([400, "no_billing_account"]);
    await desk.subscribe();
    const [customer] = desk.stripe.customers;
    Object.assign(customer as object, { deleted: true });
    expect((await desk.ada.post("/billing/portal")).body.code).toBe("no_billing_account");
  });
});

describe("when Stripe is in trouble", () => {
  const answers: [string, () => Response][] = [
    [
      "an error of its own",
      () => Response.json({ error: { message: "SECRET" } }, { status: 500, headers: NO_RETRY }),
    ],
    ["a wrong key", () => Response.json({ error: { message: `bad ${STRIPE_KEY}` } }, { status: 401 })],
    ["too many requests", () => Response.json({ error: { message: "SECRET" } }, { status: 429 })],
    ["a page", () => new Response("<html>SECRET</html>", { headers: { "content-type": "text/html" } })],
    [
      "a price that it does not know",
      () =>
        Response.json(
          { error: { code: "resource_missing", param: "price", message: "SECRET" } },
          { status: 400 },
        ),
    ],
  ];
  test.each(answers)("%s becomes a sentence of ours, and nothing of it is logged", async (_name, answer) => {
    await using desk = await billingDesk();
    const logged = logOf(desk);
    desk.stripe.first = answer;
    const { status, body } = await desk.ada.post("/billing/checkout");
    expect([status, body.code]).toEqual([503, "unavailable"]);
    expect(JSON.stringify([body, logged])).not.toMatch(/SECRET|ecretsecret/);
    expect(await accounts(desk)).toEqual([]);
    desk.stripe.first = () => undefined;
    expect((await desk.ada.post("/billing/checkout")).status).toBe(200);
  });

  test("a page without an address is no page", async () => {
    await using desk = await billingDesk();
    await desk.subscribe();
    desk.stripe.first = () => Response.json({});
    const { status, body } = await desk.ada.post("/billing/portal");
    expect([status, body.code]).toEqual([503, "unavailable"]);
  });

  test("one that is not there is said so", async () => {
    await using desk = await billingDesk({ egress: { allow: [] } });
    const { status, body } = await desk.ada.post("/billing/checkout");
    expect([status, body.code, body.detail]).toEqual([
      503,
      "unavailable",
      "The payment provider cannot be reached right now.",
    ]);
  });

  test("a broken answer is asked for again with the same idempotency key, and makes one customer", async () => {
    await using desk = await billingDesk();
    let tries = 0;
    desk.stripe.first = () => {
      tries += 1;
      return tries === 1 ? Response.json({ error: {} }, { status: 503 }) : undefined;
    };
    expect((await desk.ada.post("/billing/checkout")).status).toBe(200);
    const keys = desk.stripe.calls.map(({ headers }) => headers["idempotency-key"]);
    expect([keys[0], new Set(keys).size, keys.length]).toEqual([keys[1], 2, 3]);
    expect(desk.stripe.customers).toHaveLength(1);
  });
});

const NO_RETRY = { "stripe-should-retry": "false" };

function held({ stripe }: BillingDesk) {
  const [subscription] = stripe.subscriptions;
  if (!subscription) throw new Error("There is no subscription");
  return subscription;
}

function accounts({ app }: BillingDesk) {
  return app.db.selectFrom("billing_accounts").selectAll().execute();
}

/** Whatever is logged from now on. */
function logOf({ app }: BillingDesk): unknown[] {
  const lines: unknown[] = [];
  const keep = (...line: unknown[]): void => void lines.push(line);
  Object.assign(app.log, { error: keep, warn: keep, info: keep });
  expect(STRIPE_WEBHOOK_SECRET).toContain("ecretsecret");
  return lines;
}
