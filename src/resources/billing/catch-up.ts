import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { BillingAccountRow } from "../../db/schema.ts";
import { hasten } from "../../jobs/hasten.ts";
import { enqueue, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { accountOfCustomer, billingAccount, inTurn } from "./customers.ts";
import { takeNews } from "./provider-events.ts";
import { askStripe, type Stripe, takesPayments } from "./stripe.ts";
import { catchUp } from "./subscription.ts";
import { readPackOfSession, soldOn, takeOverPack } from "./top-ups.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

const KIND = "catch_up_payments";
/** How long a period may be over before Stripe is asked: most renewals are told of within hours. */
const OVERDUE_SECONDS = DAY_SECONDS;
/** The most accounts that one turn looks at; the next turn follows at once. */
const ACCOUNTS_IN_TURN = 50;
/** How far a turn looks back: a page stays open for a day, and Stripe tells of its payment for three. */
const LOOK_BACK_SECONDS = 3 * DAY_SECONDS;
/** The farthest that a turn looks back, however long this server was away or could not take something over. */
const MAX_LOOK_BACK_SECONDS = 30 * DAY_SECONDS;
const AT_ONCE = 100;
/** Types of events about a pack that come when nobody looks at its page any more. */
const LATER = [
  "checkout.session.async_payment_succeeded",
  "charge.refunded",
  "charge.dispute.created",
  "charge.dispute.closed",
];

/**
 * Begins to ask Stripe every hour for events that did not arrive: one may be lost while this server is away, or while
 * its settings are wrong, and Stripe gives up after three days.
 */
export async function catchUpLater(app: App, tx: Db): Promise<void> {
  if (!takesPayments(app)) return;
  const run_at = app.now();
  await goOn(app, tx, { since: run_at, after: null, run_at });
  // The clock may have been wrong when the next turn was planned.
  await hasten(app, tx, { kind: KIND, dedupe_key: KIND, run_at });
}

/**
 * Does one turn: some of the accounts whose renewal is overdue and, once there are no more of them, what was paid or
 * returned lately.
 */
export async function catchUpNow(
  app: App,
  job: Job<"catch_up_payments">,
  signal: AbortSignal,
): Promise<void> {
  const next = takesPayments(app) ? await takeTurn(app, job.payload, signal) : null;
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    if (next) await goOn(app, tx, next);
  });
}

type Turn = Job<"catch_up_payments">["payload"];
type Next = Turn & { run_at: number };

async function goOn(app: App, tx: Db, { run_at, ...payload }: Next): Promise<void> {
  await enqueue(app, tx, { kind: KIND, payload, run_at, dedupe_key: KIND });
}

async function takeTurn(app: App, { since, after }: Turn, signal: AbortSignal): Promise<Next> {
  const began = app.now();
  const accounts = await overdueAccounts(app, after);
  for (const account of accounts) {
    signal.throwIfAborted();
    await tryFor(app, about(account), () => rereadSubscription(app, account));
  }
  if (accounts.length === ACCOUNTS_IN_TURN)
    return { since, after: accounts.at(-1)?.user_id ?? null, run_at: began };
  const all = (await hasCustomers(app)) ? await takeOverPayments(app, since, signal) : true;
  return { since: all ? began : since, after: null, run_at: began + HOUR_SECONDS };
}

function overdueAccounts(app: App, after: string | null): Promise<BillingAccountRow[]> {
  return app.db
    .selectFrom("billing_accounts")
    .selectAll()
    .where("user_id", ">", after ?? "")
    .where("period_end", "<", app.now() - OVERDUE_SECONDS)
    .orderBy("user_id")
    .limit(ACCOUNTS_IN_TURN)
    .execute();
}

function rereadSubscription(app: App, { user_id }: BillingAccountRow): Promise<void> {
  return inTurn(app, user_id, async () => {
    const account = await billingAccount(app.db, user_id);
    if (account) await catchUp(app, account);
  });
}

async function hasCustomers({ db }: App): Promise<boolean> {
  const anybody = db.selectFrom("billing_accounts").select("user_id").limit(1);
  return (await anybody.executeTakeFirst()) !== undefined;
}

/** Takes over payments since a time. False when one of them has to be looked at again. */
async function takeOverPayments(app: App, since: number, signal: AbortSignal): Promise<boolean> {
  const first = app.now() - MAX_LOOK_BACK_SECONDS;
  // If the clock was ahead, `since` may lie in the future.
  const gte = since > app.now() ? first : Math.max(since - LOOK_BACK_SECONDS, first);
  const lately = { created: { gte }, limit: AT_ONCE };
  const pages = await takeOverPages(app, lately, signal);
  return (await takeOverNews(app, lately, signal)) && pages;
}

type Lately = Pick<Stripe.EventListParams, "created" | "limit">;

function takeOverPages(app: App, lately: Lately, signal: AbortSignal): Promise<boolean> {
  return askStripe(app, async ({ checkout }) => {
    let all = true;
    for await (const page of checkout.sessions.list({ ...lately, status: "complete" })) {
      signal.throwIfAborted();
      all = (await takeOverPage(app, page)) && all;
    }
    return all;
  });
}

async function takeOverPage(app: App, page: Stripe.Checkout.Session): Promise<boolean> {
  const customer = idOf(page.customer);
  const account = customer === null ? undefined : await accountOfCustomer(app.db, customer);
  if (!account) return true;
  if (page.mode === "subscription") {
    if (idOf(page.subscription) === account.subscription_id) return true;
    return tryFor(app, about(account), () => rereadSubscription(app, account));
  }
  const sold = soldOn(page);
  if (!sold || (await isAdded(app.db, sold.reference))) return true;
  return tryFor(app, about(account), () => addPack(app, account, sold.reference));
}

async function isAdded(db: Db, reference: string): Promise<boolean> {
  const entry = db.selectFrom("ledger").select("id").where("reference", "=", reference);
  return (await entry.executeTakeFirst()) !== undefined;
}

function addPack(app: App, { user_id, customer_id }: BillingAccountRow, page: string): Promise<void> {
  return inTurn(app, user_id, async () => {
    const pack = await readPackOfSession(app, page);
    await app.write(async (tx) => {
      // The account may have been deleted since.
      if (pack && (await accountOfCustomer(tx, customer_id))) await takeOverPack(app, tx, user_id, pack);
    });
  });
}

function takeOverNews(app: App, lately: Lately, signal: AbortSignal): Promise<boolean> {
  return askStripe(app, async ({ events }) => {
    let all = true;
    for await (const event of events.list({ ...lately, types: LATER })) {
      signal.throwIfAborted();
      all = (await tryFor(app, { event_id: event.id }, () => takeNews(app, event))) && all;
    }
    return all;
  });
}

/**
 * Does one piece of the work; false, and logged, when it failed: a fault of one account must not keep the others
 * waiting.
 */
async function tryFor(
  app: App,
  what: { user_id: string } | { event_id: string },
  work: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    app.log.error({ ...what, err: error }, "what an account pays could not be asked for; next time again");
    return false;
  }
}

function about({ user_id }: BillingAccountRow): { user_id: string } {
  return { user_id };
}

function idOf(named: string | { id: string } | null): string | null {
  return typeof named === "object" ? (named?.id ?? null) : named;
}
