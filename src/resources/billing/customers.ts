import { livingUser, refusalOfDeleted } from "../accounts/accounts.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { BillingAccountRow, UserRow } from "../../db/schema.ts";
import { enqueue } from "../../jobs/queue.ts";
import { createTurns, type Turns } from "../../lib/turns.ts";
import { askIfKnown, askStripe, oneRequest, type Stripe } from "./stripe.ts";

/**
 * The most pages of one customer that are looked through: far more than anybody opens, as each stays open for a day.
 */
const MAX_OPEN_PAGES = 10_000;
const PAGES_AT_ONCE = 100;

const turns = new WeakMap<App, Turns>();

/**
 * Does work that asks Stripe about an account and then writes down what it says, one at a time for each account: an
 * older answer must not replace a newer one, and nobody is to be sold two subscriptions.
 */
export function inTurn<T>(app: App, user_id: string, work: () => Promise<T>): Promise<T> {
  const own = turns.get(app) ?? createTurns();
  turns.set(app, own);
  return own(user_id, work);
}

export function billingAccount(db: Db, user_id: string): Promise<BillingAccountRow | undefined> {
  return db.selectFrom("billing_accounts").selectAll().where("user_id", "=", user_id).executeTakeFirst();
}

export function accountOfCustomer(db: Db, customer_id: string): Promise<BillingAccountRow | undefined> {
  const accounts = db.selectFrom("billing_accounts").selectAll();
  return accounts.where("customer_id", "=", customer_id).executeTakeFirst();
}

/** Makes a customer at Stripe and keeps its id; for an account that has none. */
export async function createCustomer(app: App, user: UserRow): Promise<BillingAccountRow> {
  const { id: user_id, email, name } = user;
  const customer = await askStripe(app, (stripe) =>
    stripe.customers.create(
      { email, ...(name === null ? {} : { name }), metadata: { user_id } },
      oneRequest(),
    ),
  );
  const row: BillingAccountRow = {
    user_id,
    customer_id: customer.id,
    subscription_id: null,
    status: null,
    interval: null,
    period_start: null,
    period_end: null,
    cancel_at_period_end: 0,
    plan: null,
    price_id: null,
    changed: app.now(),
  };
  try {
    await app.write(async (tx) => {
      await livingUser(tx, user);
      await tx.insertInto("billing_accounts").values(row).execute();
    });
  } catch (error) {
    // The account was deleted meanwhile: nobody would clean up after it.
    if (await refusalOfDeleted(app.db, user)) await app.write((tx) => closeLater(app, tx, customer.id));
    throw error;
  }
  return row;
}

/**
 * Whether a customer was deleted at Stripe. Throws `unavailable` for one that Stripe never had: with the key of another
 * account, or of its test mode, everybody seems to be gone.
 */
export async function isDeleted(app: App, customer: string): Promise<boolean> {
  const { deleted } = await askStripe(app, (stripe) => stripe.customers.retrieve(customer));
  return deleted === true;
}

/** Has a customer closed at Stripe by a job, which tries until that is done. */
export async function closeLater(app: App, tx: Db, customer_id: string): Promise<void> {
  await enqueue(app, tx, { kind: "close_customer", payload: { customer_id } });
}

/** Ends the pages of a customer that nobody has paid on yet. */
export async function closePages(
  app: App,
  customer: string,
  modes: Stripe.Checkout.Session.Mode[],
): Promise<void> {
  const list = { customer, status: "open", limit: PAGES_AT_ONCE } as const;
  const open = await askIfKnown(app, (stripe) =>
    stripe.checkout.sessions.list(list).autoPagingToArray({ limit: MAX_OPEN_PAGES }),
  );
  for (const { id, mode } of open ?? [])
    if (modes.includes(mode)) await askStripe(app, (stripe) => endPage(stripe, id));
}

async function endPage({ checkout, errors }: Stripe, id: string): Promise<Stripe.Checkout.Session> {
  try {
    return await checkout.sessions.expire(id, {}, oneRequest());
  } catch (error) {
    if (!(error instanceof errors.StripeInvalidRequestError)) throw error;
    // Only an open page can be ended: it was paid on, or lapsed, since the list was read.
    const page = await checkout.sessions.retrieve(id);
    if (page.status === "open") throw error;
    return page;
  }
}
