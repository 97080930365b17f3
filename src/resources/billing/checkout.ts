import { livingUser } from "../accounts/accounts.ts";
import type { App } from "../../app.ts";
import type { BillingAccountRow, Plan, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { billingAccount, closePages, createCustomer, inTurn, isDeleted } from "./customers.ts";
import { planName, PLANS, refuseBelowPlan } from "./plans.ts";
import { planChangePage } from "./portal.ts";
import { askStripe, oneRequest, pageOf, refuseUnconfigured } from "./stripe.ts";
import { catchUp, type Held, type Interval, type PaidPlan } from "./subscription.ts";

interface Wish {
  plan: PaidPlan;
  interval: Interval;
}

/**
 * The page on which the account subscribes to a plan; for one that has a subscription, the page on which it changes.
 * Throws `already_subscribed` for the plan that it has.
 */
export async function openCheckout(app: App, caller: UserRow, wish: Wish): Promise<{ url: string }> {
  const setting = `price_${wish.plan}_${wish.interval}` as const;
  refuseUnconfigured(app, setting);
  const price = app.config.billing[setting];
  return inTurn(app, caller.id, async () => {
    const held = await currentSubscription(app, caller);
    const user = await livingUser(app.db, caller);
    refuseOwned(user.plan, wish.plan, held);
    const account = await ensureAccount(app, user);
    if (held) return planChangePage(app, account, { ...held, price });
    const session = await askStripe(app, (stripe) =>
      stripe.checkout.sessions.create(
        {
          mode: "subscription",
          customer: account.customer_id,
          client_reference_id: user.id,
          line_items: [{ price, quantity: 1 }],
          subscription_data: { metadata: { user_id: user.id } },
          ...returnPages(app),
        },
        oneRequest(),
      ),
    );
    return pageOf(session);
  });
}

const BUYING = ["pro", "Buying credits"] as const;

/** The page on which a pack of credits is paid. */
export async function openTopup(app: App, caller: UserRow): Promise<{ url: string }> {
  refuseUnconfigured(app, "price_topup");
  refuseBelowPlan(caller, ...BUYING);
  const { price_topup: price, topup_credits } = app.config.billing;
  return inTurn(app, caller.id, async () => {
    await forgetDeletedCustomer(app, caller);
    const user = await livingUser(app.db, caller);
    refuseBelowPlan(user, ...BUYING);
    const account = await ensureAccount(app, user);
    const session = await askStripe(app, (stripe) =>
      stripe.checkout.sessions.create(
        {
          mode: "payment",
          customer: account.customer_id,
          client_reference_id: user.id,
          line_items: [{ price, quantity: 1 }],
          // What was promised at this price, so that it counts even if the settings change before it is paid.
          metadata: { topup_credits },
          ...returnPages(app),
        },
        oneRequest(),
      ),
    );
    return pageOf(session);
  });
}

/** The subscription that Stripe has for the account now, which may be newer than what it has told. */
async function currentSubscription(app: App, user: UserRow): Promise<Held | null> {
  const known = await billingAccount(app.db, user.id);
  if (!known) return null;
  // Pages that are open are closed, so that nobody pays on two.
  await closePages(app, known.customer_id, ["subscription"]);
  const { held, resting } = await catchUp(app, known);
  if (!held && resting.length > 0) throw restingSubscription();
  return held;
}

function restingSubscription(): AppError {
  return new AppError("already_subscribed", "Your account has a subscription that is paused or not paid.", {
    fix: "Resume it, pay for it or cancel it with “Invoices, card and cancelling” (`POST /billing/portal`).",
  });
}

/** Forgets a customer that was deleted at Stripe, whose subscription ended with it. */
async function forgetDeletedCustomer(app: App, user: UserRow): Promise<void> {
  const known = await billingAccount(app.db, user.id);
  if (known && (await isDeleted(app, known.customer_id))) await catchUp(app, known);
}

async function ensureAccount(app: App, user: UserRow): Promise<BillingAccountRow> {
  return (await billingAccount(app.db, user.id)) ?? (await createCustomer(app, user));
}

/**
 * Throws `already_subscribed` if the account has the plan. What its subscription is for counts more than its plan,
 * which the operator may have given.
 */
function refuseOwned(has: Plan, wanted: PaidPlan, held: Held | null): void {
  const owned = held?.plan ?? has;
  const is_owned = held ? owned === wanted : PLANS.indexOf(owned) >= PLANS.indexOf(wanted);
  if (!is_owned) return;
  throw new AppError("already_subscribed", `Your account has the ${planName(owned)} plan already.`, {
    fix: "Change how you pay, or cancel, with “Invoices, card and cancelling” (`POST /billing/portal`).",
  });
}

function returnPages(app: App) {
  const page = `${app.base_url}/app/billing`;
  return { success_url: `${page}?checkout=done`, cancel_url: `${page}?checkout=cancelled` };
}
