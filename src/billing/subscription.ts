import type { App } from "../app.ts";
import type { Config } from "../config.ts";
import type { Db } from "../db/database.ts";
import type { BillingAccountRow, Plan, UserRow } from "../db/schema.ts";
import { changePlan } from "./change-plan.ts";
import { isDeleted } from "./customers.ts";
import { defaultPlan, PLANS } from "./plans.ts";
import { askIfKnown, type Stripe } from "./stripe.ts";

/** While a payment is late Stripe tries again for some time, and the plan stays. */
const LIVE = new Set(["active", "trialing", "past_due"]);
/** It gives no plan any more, and never will again. */
const ENDED = new Set(["canceled", "incomplete_expired"]);
/** Far more than one customer ever has. */
const MAX_SUBSCRIPTIONS = 100;

export const INTERVALS = ["month", "year"] as const;
export type Interval = (typeof INTERVALS)[number];
export type PaidPlan = Exclude<Plan, "free">;

/** A subscription as far as it matters here. */
export interface Held {
  subscription_id: string;
  item_id: string;
  status: string;
  /** Null for a price that no setting names. */
  plan: PaidPlan | null;
  interval: Interval;
  period_start: number;
  period_end: number;
  cancel_at_period_end: number;
}

/** What Stripe says of a customer now; `there` is false for one that was deleted there. */
interface Standing {
  there: boolean;
  held: Held | null;
  /** Whether there is one that gives no plan now and may come back: paused, unpaid, or not paid for yet. */
  resting: boolean;
}

/** Asked anew every time: events come late, twice and in any order, and in the words of any version of the interface. */
export async function readStanding(app: App, account: BillingAccountRow): Promise<Standing> {
  const { customer_id: customer, subscription_id } = account;
  const found = await askIfKnown(app, (stripe) =>
    stripe.subscriptions.list({ customer, status: "all", limit: MAX_SUBSCRIPTIONS }),
  );
  const known = found?.data ?? [];
  const live = known.filter(({ status }) => LIVE.has(status));
  const resting = known.some(({ status }) => !LIVE.has(status) && !ENDED.has(status));
  const all = live
    .flatMap((subscription) => heldOf(app.config, subscription))
    // One for something that is not sold here is none of ours, but if its price was one of ours before.
    .filter((held) => held.plan !== null || held.subscription_id === subscription_id);
  // The newest comes first; a larger plan counts before a newer one.
  const [held = null] = all.sort((a, b) => rankOf(b.plan) - rankOf(a.plan));
  return { there: held !== null || !(await isDeleted(app, customer)), held, resting };
}

/** Writes down what Stripe says, and moves the account to the plan that follows from it. */
export async function takeOver(app: App, tx: Db, account: BillingAccountRow, standing: Standing) {
  const { user_id } = account;
  const user = await tx.selectFrom("users").selectAll().where("id", "=", user_id).executeTakeFirstOrThrow();
  if (standing.there) await save(app, tx, account, standing.held);
  else await tx.deleteFrom("billing_accounts").where("user_id", "=", user_id).execute();
  const plan = planAfter(app, user, account, standing.held);
  if (plan === user.plan) return;
  await changePlan(app, tx, user, { plan, reason: "subscription" });
  app.log.info({ user_id, plan }, "plan changed by a subscription");
}

async function save(app: App, tx: Db, account: BillingAccountRow, held: Held | null): Promise<void> {
  const { subscription_id = null, status = null, interval = null } = held ?? {};
  const { period_start = null, period_end = null, cancel_at_period_end = 0 } = held ?? {};
  const change = { subscription_id, status, interval, period_start, period_end, cancel_at_period_end };
  await tx
    .updateTable("billing_accounts")
    .set({ ...change, changed: app.now() })
    .where("user_id", "=", account.user_id)
    .execute();
}

/** Only the beginning, the change and the end of a subscription move an account: a plan from the operator stays. */
function planAfter(app: App, user: UserRow, before: BillingAccountRow, held: Held | null): Plan {
  if (held === null) return before.subscription_id === null ? user.plan : defaultPlan(app.config);
  if (held.plan === null) {
    app.log.warn({ subscription_id: held.subscription_id }, "no setting of [billing] names the price");
    return user.plan;
  }
  const samePeriod =
    before.subscription_id === held.subscription_id && before.period_start === held.period_start;
  // What is paid for stays until its period ends.
  return samePeriod && rankOf(held.plan) < rankOf(user.plan) ? user.plan : held.plan;
}

function heldOf(config: Config, subscription: Stripe.Subscription): Held[] {
  const sold = subscription.items.data.map((item) => ({ item, ...soldAs(config, item.price.id) }));
  const best = sold.sort((a, b) => rankOf(b.plan) - rankOf(a.plan))[0];
  if (best === undefined) return [];
  const { item, plan } = best;
  return [
    {
      subscription_id: subscription.id,
      item_id: item.id,
      status: subscription.status,
      plan,
      interval: best.interval ?? (item.price.recurring?.interval === "year" ? "year" : "month"),
      period_start: item.current_period_start,
      period_end: item.current_period_end,
      cancel_at_period_end: subscription.cancel_at_period_end || subscription.cancel_at !== null ? 1 : 0,
    },
  ];
}

function soldAs({ billing }: Config, price: string): { plan: PaidPlan | null; interval: Interval | null } {
  for (const plan of ["pro", "team"] as const)
    for (const interval of INTERVALS)
      if (billing[`price_${plan}_${interval}`] === price) return { plan, interval };
  return { plan: null, interval: null };
}

function rankOf(plan: Plan | null): number {
  return plan === null ? -1 : PLANS.indexOf(plan);
}
