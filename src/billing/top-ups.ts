import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { takeBackTopUp, topUp } from "./ledger.ts";
import { askStripe, type Stripe } from "./stripe.ts";

/** A pack of credits that was paid, as Stripe has it now. */
export interface PaidPack {
  /** Of the page it was paid on: there is one for each pack. */
  reference: string;
  credits: number;
  /** Of the price, in its smallest unit. */
  amount: number;
  refunded: number;
}

const EXPAND = "payment_intent.latest_charge";

/** Null for a page that is not paid yet, or is none of ours. */
export async function readPackOfSession(app: App, session_id: string): Promise<PaidPack | null> {
  const session = await askStripe(app, (stripe) =>
    stripe.checkout.sessions.retrieve(session_id, { expand: [EXPAND] }),
  );
  return packOf(session);
}

/** Null for a payment of something else. */
export async function readPackOfPayment(app: App, payment_intent: string): Promise<PaidPack | null> {
  const { data } = await askStripe(app, (stripe) =>
    stripe.checkout.sessions.list({ payment_intent, limit: 1, expand: [`data.${EXPAND}`] }),
  );
  return data[0] === undefined ? null : packOf(data[0]);
}

/** Adds the credits of a pack once, and takes back those that were refunded: in parts, those of the part. */
export async function takeOverPack(app: App, tx: Db, user_id: string, pack: PaidPack): Promise<void> {
  const { reference, credits, amount, refunded } = pack;
  await topUp(app, tx, user_id, { credits, reference });
  if (refunded === 0 || amount === 0) return;
  const part = Math.min(credits, Math.ceil((credits * refunded) / amount));
  const taken = await takenBack(tx, reference);
  // What has been spent already is not asked for again: an account never owes credits.
  if (part > taken)
    await takeBackTopUp(app, tx, user_id, {
      credits: part - taken,
      reference: `${refundsOf(reference)}${part}`,
    });
}

/** Of a pack, the credits that refunds have been worth so far, whether there were that many left or not. */
async function takenBack(tx: Db, reference: string): Promise<number> {
  const before = refundsOf(reference);
  const rows = await tx
    .selectFrom("ledger")
    .select("reference")
    .where("reference", ">=", before)
    .where("reference", "<", `${before}:`)
    .execute();
  return Math.max(0, ...rows.map(({ reference: name }) => Number(name?.slice(before.length))));
}

/** What the references of its refunds begin with; the credits that they add up to follow. */
function refundsOf(reference: string): string {
  return `${reference}/refunded/`;
}

function packOf(session: Stripe.Checkout.Session): PaidPack | null {
  const { id, mode, payment_status, metadata, payment_intent } = session;
  const credits = Number(metadata?.["topup_credits"] ?? 0);
  const isPack = mode === "payment" && Number.isSafeInteger(credits) && credits > 0;
  if (!isPack || payment_status === "unpaid") return null;
  const charge = chargeOf(payment_intent);
  return {
    reference: id,
    credits,
    amount: charge?.amount ?? 0,
    refunded: charge?.amount_refunded ?? 0,
  };
}

/** Null where nothing was charged, as with a voucher for the whole price. */
function chargeOf(payment_intent: Stripe.Checkout.Session["payment_intent"]): Stripe.Charge | null {
  const charge = typeof payment_intent === "object" ? payment_intent?.latest_charge : null;
  return typeof charge === "object" ? charge : null;
}
