import type { App } from "../../app.ts";
import type { BillingAccountRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { billingAccount } from "./customers.ts";
import { askIfKnown, askStripe, oneRequest, pageOf, refuseUnconfigured } from "./stripe.ts";

/** The page on which an account sees its invoices, changes how it pays, and cancels. */
export async function openPortal(app: App, user: UserRow): Promise<{ url: string }> {
  refuseUnconfigured(app);
  const account = await billingAccount(app.db, user.id);
  const session =
    account &&
    (await askIfKnown(app, (stripe) =>
      stripe.billingPortal.sessions.create(
        { customer: account.customer_id, return_url: returnPage(app) },
        oneRequest(),
      ),
    ));
  if (session) return pageOf(session);
  throw new AppError("no_billing_account", "You have not paid for anything here yet.", {
    fix: "Begin with a plan or with credits (`POST /billing/checkout`, `POST /billing/topup`).",
  });
}

/** The page on which a subscription moves to another price, once its owner has seen what that costs. */
export async function planChangePage(
  app: App,
  { customer_id: customer }: BillingAccountRow,
  { subscription_id, item_id, price }: { subscription_id: string; item_id: string; price: string },
): Promise<{ url: string }> {
  const session = await askStripe(app, (stripe) =>
    stripe.billingPortal.sessions.create(
      {
        customer,
        return_url: returnPage(app),
        flow_data: {
          type: "subscription_update_confirm",
          subscription_update_confirm: {
            subscription: subscription_id,
            items: [{ id: item_id, price, quantity: 1 }],
          },
        },
      },
      oneRequest(),
    ),
  );
  return pageOf(session);
}

function returnPage(app: App): string {
  return `${app.base_url}/app/billing`;
}
