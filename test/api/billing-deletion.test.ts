import { expect, test } from "bun:test";
import type { Caller } from "../support/app.ts";
import { type BillingDesk, billingDesk } from "../support/billing-desk.ts";

const ADA = "ada@example.com";

test("with an account its subscription ends at Stripe, and its customer with the open pages", async () => {
  await using desk = await billingDesk();
  await desk.subscribe();
  await deleteAccount(desk, desk.ada);
  expect(await jobs(desk)).toMatchObject([{ kind: "close_customer" }, { kind: "erase_account" }]);
  await desk.drain();
  expect(desk.stripe.subscriptions).toMatchObject([{ status: "canceled" }]);
  expect(desk.stripe.customers).toMatchObject([{ deleted: true }]);
  expect(await jobs(desk)).toEqual([]);
  expect(await desk.app.db.selectFrom("billing_accounts").selectAll().execute()).toEqual([]);
});

test("nobody can pay any more on a page that was open when the account was deleted", async () => {
  await using desk = await billingDesk({ plans: { default: "pro" } });
  await desk.page("/billing/topup");
  await desk.page("/billing/checkout", { plan: "team" });
  await deleteAccount(desk, desk.ada);
  await desk.drain();
  expect(desk.stripe.sessions.map(({ status }) => status)).toEqual(["expired", "expired"]);
});

test("while Stripe is down the cancellation waits, and is tried again", async () => {
  await using desk = await billingDesk();
  await desk.subscribe();
  desk.stripe.first = () =>
    Response.json({ error: {} }, { status: 500, headers: { "stripe-should-retry": "false" } });
  await deleteAccount(desk, desk.ada);
  await desk.drain();
  expect(await jobs(desk)).toMatchObject([{ kind: "close_customer", status: "pending", failures: 1 }]);
  expect(desk.stripe.subscriptions).toMatchObject([{ status: "active" }]);
  desk.stripe.first = () => undefined;
  desk.clock.advance("1h");
  await desk.drain();
  expect([desk.stripe.subscriptions[0]?.status, await jobs(desk)]).toEqual(["canceled", []]);
});

test("with the key of another account of Stripe's, where everybody is unknown, the cancellation waits as well", async () => {
  await using desk = await billingDesk();
  await desk.subscribe();
  desk.stripe.first = () => Response.json(UNKNOWN, { status: 404 });
  await deleteAccount(desk, desk.ada);
  await desk.drain();
  expect(await jobs(desk)).toMatchObject([{ kind: "close_customer", status: "pending", failures: 1 }]);
});

test("a cancellation that was done but not written down is done again without harm", async () => {
  await using desk = await billingDesk();
  await desk.subscribe();
  await deleteAccount(desk, desk.ada);
  const [subscription] = desk.stripe.subscriptions;
  const [customer] = desk.stripe.customers;
  Object.assign(subscription as object, { status: "canceled" });
  Object.assign(customer as object, { deleted: true });
  await desk.drain();
  expect(await jobs(desk)).toEqual([]);
});

test("events that come after the end of an account are fine", async () => {
  await using desk = await billingDesk();
  const events = desk.stripe.pay(await desk.page("/billing/checkout"));
  await deleteAccount(desk, desk.ada);
  await desk.drain();
  expect((await desk.deliver(...events)).status).toBe(200);
  expect(await desk.app.db.selectFrom("billing_accounts").selectAll().execute()).toEqual([]);
});

test("an event that is worked on while its account is deleted leaves nothing", async () => {
  await using desk = await billingDesk();
  const [event] = desk.stripe.pay(await desk.page("/billing/checkout"));
  if (!event) throw new Error("Nothing was paid");
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<undefined>();
  desk.stripe.first = () => {
    asked.resolve();
    return goOn.promise;
  };
  const delivery = desk.deliver(event);
  await asked.promise;
  await deleteAccount(desk, desk.ada);
  goOn.resolve(undefined);
  expect((await delivery).status).toBe(200);
  expect(await desk.app.db.selectFrom("billing_events").selectAll().execute()).toEqual([]);
});

test("an account that is deleted while its customer is made has nothing there to pay for", async () => {
  await using desk = await billingDesk();
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<undefined>();
  desk.stripe.first = () => {
    asked.resolve();
    return goOn.promise;
  };
  const call = desk.ada.post("/billing/checkout");
  await asked.promise;
  await deleteAccount(desk, desk.ada);
  goOn.resolve(undefined);
  const { status, body } = await call;
  expect([status, body.code]).toEqual([401, "unauthorized"]);
  await desk.drain();
  expect(desk.stripe).toMatchObject({ sessions: [], customers: [{ deleted: true }] });
});

test("an account that never paid leaves Stripe alone", async () => {
  await using desk = await billingDesk();
  await deleteAccount(desk, desk.ada);
  await desk.drain();
  expect(desk.stripe.calls).toEqual([]);
});

const UNKNOWN = {
  error: { type: "invalid_request_error", code: "resource_missing", message: "No such thing" },
};

async function deleteAccount(desk: BillingDesk, { key }: Caller): Promise<void> {
  const { status } = await desk.request("/auth/account", {
    method: "DELETE",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ confirm: ADA }),
  });
  expect(status).toBe(204);
}

function jobs({ app }: BillingDesk) {
  return app.db.selectFrom("jobs").selectAll().orderBy("kind").execute();
}
