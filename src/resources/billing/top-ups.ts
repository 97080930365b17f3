import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { giveBackTopUp, takeBackTopUp, topUp } from "./ledger.ts";
import { askStripe, type Stripe } from "./stripe.ts";

/** A pack of credits that was paid, as Stripe has it now. */
export interface PaidPack {
  /** The id of the page that it was paid on: there is one for each pack. */
  reference: string;
  credits: number;
  /** The price, in its smallest unit. */
  amount: number;
  /** How much of the price was refunded, or taken back by the payer's bank. */
  returned: number;
}

/** The members of a page that are read along with it, instead of their ids alone. */
const PACK_PARTS = "payment_intent.latest_charge";

const MAX_DISPUTES = 100;
/** States of a dispute in which the money has not been taken, or has come back. */
const MONEY_IS_HERE = new Set([
  "won",
  "prevented",
  "warning_needs_response",
  "warning_under_review",
  "warning_closed",
]);

/** The pack that was paid on a page; null for a page that is not paid yet, or is none of ours. */
export async function readPackOfSession(app: App, session_id: string): Promise<PaidPack | null> {
  const session = await askStripe(app, (stripe) =>
    stripe.checkout.sessions.retrieve(session_id, { expand: [PACK_PARTS] }),
  );
  return packOn(app, session);
}

/** The pack of a payment; null for a payment of something else. */
export async function readPackOfPayment(app: App, payment_intent: string): Promise<PaidPack | null> {
  const session = await pageOfPayment(app, payment_intent);
  return session && packOn(app, session);
}

/** The page of a payment; null for a payment on no page. */
export async function pageOfPayment(
  app: App,
  payment_intent: string,
): Promise<Stripe.Checkout.Session | null> {
  const { data } = await askStripe(app, (stripe) =>
    stripe.checkout.sessions.list({ payment_intent, limit: 1, expand: [`data.${PACK_PARTS}`] }),
  );
  return data[0] ?? null;
}

/**
 * Adds the credits of a pack once, and takes back those whose payment was returned, in part if it was returned in
 * part. If a return is undone, they are given back. To be called in the account's turn (see `inTurn`).
 */
export async function takeOverPack(app: App, tx: Db, user_id: string, pack: PaidPack): Promise<void> {
  const { reference, credits, amount, returned } = pack;
  await topUp(app, tx, user_id, { credits, reference });
  const due = amount === 0 ? 0 : Math.min(credits, Math.ceil((credits * returned) / amount));
  const before = await returnsOf(tx, reference);
  if (due === before.due) return;
  const name = `${returnsName(reference)}${due}`;
  const change = { reference: before.count === 0 ? name : `${name}/${before.count}` };
  // Credits that have been spent are not taken back: an account never owes any.
  if (due > before.due) await takeBackTopUp(app, tx, user_id, { credits: due - before.due, ...change });
  else
    await giveBackTopUp(app, tx, user_id, { credits: Math.min(before.due - due, before.taken), ...change });
}

/**
 * Returns the credits that the returns of a pack have been worth so far, and how many of them were left to be taken.
 */
async function returnsOf(tx: Db, reference: string) {
  const name = returnsName(reference);
  const rows = await tx
    .selectFrom("ledger")
    .select(["reference", "amount"])
    .where("reference", ">=", name)
    .where("reference", "<", `${name}:`)
    .orderBy("id")
    .execute();
  const last = rows.at(-1)?.reference?.slice(name.length) ?? "0";
  const taken = rows.reduce((sum, { amount }) => sum - amount, 0);
  return { due: Number.parseInt(last, 10), taken, count: rows.length };
}

/** The beginning of the references of a pack's returns; the credits that they add up to follow. */
function returnsName(reference: string): string {
  return `${reference}/refunded/`;
}

/** What was sold on a page; null for one that is not paid yet, or is none of ours. */
export function soldOn(session: Stripe.Checkout.Session): Pick<PaidPack, "reference" | "credits"> | null {
  const { id: reference, mode, payment_status, metadata } = session;
  const credits = Number(metadata?.["topup_credits"] ?? 0);
  const is_pack = mode === "payment" && Number.isSafeInteger(credits) && credits > 0;
  if (!is_pack || payment_status === "unpaid") return null;
  return { reference, credits };
}

async function packOn(app: App, session: Stripe.Checkout.Session): Promise<PaidPack | null> {
  const pack = soldOn(session);
  if (!pack) return null;
  const charge = chargeOf(session.payment_intent);
  if (!charge) return { ...pack, amount: 0, returned: 0 };
  const disputed = charge.disputed ? await disputedOf(app, charge.id) : 0;
  return { ...pack, amount: charge.amount, returned: charge.amount_refunded + disputed };
}

async function disputedOf(app: App, charge: string): Promise<number> {
  const { data } = await askStripe(app, (stripe) => stripe.disputes.list({ charge, limit: MAX_DISPUTES }));
  return data.reduce((sum, { status, amount }) => (MONEY_IS_HERE.has(status) ? sum : sum + amount), 0);
}

/** The charge of a payment; null where nothing was charged, as with a voucher for the whole price. */
function chargeOf(payment_intent: Stripe.Checkout.Session["payment_intent"]): Stripe.Charge | null {
  const charge = typeof payment_intent === "object" ? payment_intent?.latest_charge : null;
  return typeof charge === "object" ? charge : null;
}
