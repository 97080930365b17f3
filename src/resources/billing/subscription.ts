import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import type { Db } from "../../db/database.ts";
import type { BillingAccountRow, Plan, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { changePlan } from "./change-plan.ts";
import { billingAccount, isDeleted } from "./customers.ts";
import { carryUsed } from "./ledger.ts";
import { periodOf } from "./period.ts";
import { defaultPlan, PLANS } from "./plans.ts";
import { askIfKnown, type Stripe } from "./stripe.ts";

/** States in which a subscription gives its plan. While a payment is late, Stripe tries again for some time. */
const LIVE = new Set(["active", "trialing", "past_due"]);
/** States in which a subscription gives no plan, and never will again. */
const ENDED = new Set(["canceled", "incomplete_expired"]);
/** The most subscriptions that are read: far more than one customer ever has. */
const MAX_SUBSCRIPTIONS = 100;

export const INTERVALS = ["month", "year"] as const;
export type Interval = (typeof INTERVALS)[number];
export type PaidPlan = Exclude<Plan, "free">;

/** A subscription as far as it matters here. */
export interface Held {
  subscription_id: string;
  item_id: string;
  price_id: string;
  status: string;
  plan: PaidPlan;
  interval: Interval;
  period_start: number;
  period_end: number;
  cancel_at_period_end: number;
}

/** What Stripe says of a customer now; `there` is false for one that was deleted there. */
interface Standing {
  there: boolean;
  held: Held | null;
  /** Subscriptions that give no plan now and may do so again: paused, unpaid, or not paid for yet. */
  resting: Pick<Held, "subscription_id" | "status">[];
}

/** Asks Stripe about an account, and takes over what it says. To be called in the account's turn (see `inTurn`). */
export async function catchUp(app: App, account: BillingAccountRow): Promise<Standing> {
  const standing = await readStanding(app, account);
  await app.write(async (tx) => {
    // Read again: the account may have been deleted since.
    const now = await billingAccount(tx, account.user_id);
    if (now) await takeOver(app, tx, now, standing);
  });
  return standing;
}

/**
 * Asks Stripe how a customer stands. Events are not relied on: they come late, twice and in any order, and in the
 * words of any version of the interface. Throws `unavailable` also while the settings do not name the price of a
 * subscription that began here.
 */
export async function readStanding(app: App, account: BillingAccountRow): Promise<Standing> {
  const { customer_id: customer } = account;
  const found = await askIfKnown(app, (stripe) =>
    stripe.subscriptions.list({ customer, status: "all", limit: MAX_SUBSCRIPTIONS }),
  );
  const known = found?.data ?? [];
  const live = known.filter(({ status }) => LIVE.has(status));
  const resting = known
    .filter(({ status }) => !LIVE.has(status) && !ENDED.has(status))
    .map(({ id, status }) => ({ subscription_id: id, status }));
  // The largest plan counts and, of several with it, the newest, with which Stripe's list begins.
  const [held = null] = live
    .flatMap((subscription) => heldOf(app, account, subscription))
    .sort((a, b) => rankOf(b.plan) - rankOf(a.plan));
  return { there: held !== null || !(await isDeleted(app, customer)), held, resting };
}

/** Writes down what Stripe says, and moves the account to the plan that follows from it. */
export async function takeOver(app: App, tx: Db, account: BillingAccountRow, standing: Standing) {
  const { user_id } = account;
  const { there, held } = standing;
  const user = await tx.selectFrom("users").selectAll().where("id", "=", user_id).executeTakeFirstOrThrow();
  if (there) await save(app, tx, account, standing);
  else await tx.deleteFrom("billing_accounts").where("user_id", "=", user_id).execute();
  const plan = planAfter(app, user, account, held);
  if (plan !== user.plan) {
    await changePlan(app, tx, user, { plan, reason: "subscription" });
    app.log.info({ user_id, plan }, "plan changed by a subscription");
  }
  if (!held || held.subscription_id !== account.subscription_id || plan === "free") return;
  const period = periodOf({ ...account, plan: held.plan }, app.now());
  // With another interval, a new period begins in the middle of the old one: what was used has to count in it, or
  // each change would bring new credits.
  if (held.period_start < period.end) await carryUsed(app, tx, user, period);
}

/**
 * Saves a subscription. One that has ended keeps what its price was for. One that is paused or unpaid keeps its
 * period as well, so that what was used in it stays used when it comes back.
 */
async function save(
  app: App,
  tx: Db,
  account: BillingAccountRow,
  { held, resting }: Standing,
): Promise<void> {
  const { user_id, subscription_id } = account;
  const rests = resting.find((one) => one.subscription_id === subscription_id);
  const { item_id: _, ...change } = held ?? { item_id: null, ...(rests ?? NONE_HELD) };
  await tx
    .updateTable("billing_accounts")
    .set({ ...change, changed: app.now() })
    .where("user_id", "=", user_id)
    .execute();
}

const NONE_HELD = {
  subscription_id: null,
  status: null,
  period_start: null,
  period_end: null,
  cancel_at_period_end: 0,
};

/**
 * The plan of an account after a look at Stripe. Only a change at Stripe moves it: while the subscription is as
 * before, a plan that the operator gave stays.
 */
function planAfter(app: App, user: UserRow, before: BillingAccountRow, held: Held | null): Plan {
  const gave = LIVE.has(before.status ?? "") ? before.subscription_id : null;
  const is_same = gave === (held?.subscription_id ?? null);
  if (is_same && (held === null || held.plan === before.plan)) return user.plan;
  return held?.plan ?? defaultPlan(app.config);
}

/** Returns the subscription as needed here; null if its price is not sold here. */
function heldOf(app: App, account: BillingAccountRow, subscription: Stripe.Subscription): Held[] {
  const items = subscription.items.data;
  const sold = items.flatMap((item) => {
    const meaning = meaningOf(app.config, account, item.price.id);
    return meaning ? [{ item, ...meaning }] : [];
  });
  const [best] = sold.sort((a, b) => rankOf(b.plan) - rankOf(a.plan));
  if (!best) {
    if (isOurs(account, subscription)) throw unnamedPrice(app, account, subscription);
    return [];
  }
  const { item, plan, interval } = best;
  return [
    {
      subscription_id: subscription.id,
      item_id: item.id,
      price_id: item.price.id,
      status: subscription.status,
      plan,
      interval,
      period_start: item.current_period_start,
      period_end: item.current_period_end,
      cancel_at_period_end: subscription.cancel_at_period_end || subscription.cancel_at !== null ? 1 : 0,
    },
  ];
}

/** Returns the plan and interval of a price: as configured now, or as configured when this account last had it. */
function meaningOf(
  { billing }: Config,
  { price_id, plan, interval }: BillingAccountRow,
  price: string,
): { plan: PaidPlan; interval: Interval } | null {
  for (const plan of ["pro", "team"] as const)
    for (const interval of INTERVALS)
      if (billing[`price_${plan}_${interval}`] === price) return { plan, interval };
  return price === price_id && plan && interval ? { plan, interval } : null;
}

/** Whether it began on a page of ours, or was known before. */
function isOurs({ user_id, subscription_id }: BillingAccountRow, { id, metadata }: Stripe.Subscription) {
  return id === subscription_id || metadata["user_id"] === user_id;
}

function unnamedPrice(app: App, account: BillingAccountRow, { id, items }: Stripe.Subscription): AppError {
  const { user_id } = account;
  const prices = items.data.map(({ price }) => price.id);
  app.log.error(
    { user_id, subscription_id: id, prices },
    "no setting of [billing] names the price of a subscription; set the one for its plan and interval to it",
  );
  return new AppError("unavailable", "Your subscription has a price that this server does not know.", {
    fix: "Nothing was paid. If you run this server: its log names the price, and [billing] has to.",
  });
}

function rankOf(plan: PaidPlan): number {
  return PLANS.indexOf(plan);
}
