import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { billingAccount, closeLater, closePages, isDeleted } from "./customers.ts";
import { askIfKnown } from "./stripe.ts";

const MAX_SUBSCRIPTIONS = 100;
const ENDED = new Set(["canceled", "incomplete_expired"]);

/** Sees to it, in the transaction that deletes an account, that nothing is charged for it any more. */
export async function closeCustomerLater(app: App, tx: Db, user_id: string): Promise<void> {
  const account = await billingAccount(tx, user_id);
  if (account) await closeLater(app, tx, account.customer_id);
}

/** Ends what is still to be paid on, cancels what goes on, and deletes the customer. Done twice it does no harm. */
export async function closeCustomerNow(
  app: App,
  job: Job<"close_customer">,
  signal: AbortSignal,
): Promise<void> {
  await endCustomer(app, job.payload.customer_id);
  await writeOutcome(app, signal, (tx) => finishJob(tx, job));
}

async function endCustomer(app: App, customer: string): Promise<void> {
  if (await isDeleted(app, customer)) return;
  await closePages(app, customer, ["payment", "subscription"]);
  const found = await askIfKnown(app, (stripe) =>
    stripe.subscriptions.list({ customer, status: "all", limit: MAX_SUBSCRIPTIONS }),
  );
  for (const { id, status } of found?.data ?? [])
    if (!ENDED.has(status)) await askIfKnown(app, (stripe) => stripe.subscriptions.cancel(id));
  await askIfKnown(app, (stripe) => stripe.customers.del(customer));
}
