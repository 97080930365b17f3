import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { BillingAccountRow } from "../../db/schema.ts";
import { member } from "../../lib/foreign-json.ts";
import { accountOfCustomer, inTurn } from "./customers.ts";
import { openEvent, refuseUnconfigured, type Stripe } from "./stripe.ts";
import { readStanding, takeOver } from "./subscription.ts";
import { pageOfPayment, readPackOfPayment, readPackOfSession, takeOverPack } from "./top-ups.ts";

/** Writes down what an event led to. */
type Effect = (tx: Db, account: BillingAccountRow) => Promise<void>;

interface Subject {
  customer: string;
  /** Asks Stripe how things are now: what the event itself says may be old. */
  look: (app: App, account: BillingAccountRow) => Promise<Effect | null>;
}

/**
 * Takes an event that somebody has sent in Stripe's name. An event that was seen before, or that means nothing here,
 * is accepted without effect. Throws `invalid_signature`, and `unavailable` when Stripe should send it again.
 */
export async function takeEvent(app: App, raw: Uint8Array, signature: string): Promise<void> {
  refuseUnconfigured(app);
  const event = await openEvent(app, raw, signature);
  const { id: event_id, type } = event;
  if (!(await takeNews(app, event))) app.log.info({ event_id, type }, "a payment event is about nobody here");
}

/** Takes an event that Stripe was asked for. False for one that is about nobody here. */
export async function takeNews(app: App, event: Stripe.Event): Promise<boolean> {
  if (await isSeen(app.db, event)) return true;
  const subject = await SUBJECTS.get(event.type)?.(event.data.object, app);
  if (!subject) return true;
  const known = await accountOfCustomer(app.db, subject.customer);
  if (!known) return false;
  await inTurn(app, known.user_id, async () => {
    if (await isSeen(app.db, event)) return;
    const before = await accountOfCustomer(app.db, subject.customer);
    const effect = before && (await subject.look(app, before));
    await app.write(async (tx) => {
      // Read again: the account may have been deleted since.
      const account = await accountOfCustomer(tx, subject.customer);
      if (!account || (await isSeen(tx, event))) return;
      const { id, type, created } = event;
      await tx.insertInto("billing_events").values({ id, type, created }).execute();
      await effect?.(tx, account);
    });
  });
  return true;
}

const ofSubscription = (object: object): Subject | null => subscriber(idIn(object, "customer"));

const ofSession = (object: object): Subject | null => {
  const [customer, session_id] = [idIn(object, "customer"), idIn(object, "id")];
  if (member(object, "mode") !== "payment") return subscriber(customer);
  if (customer === null || session_id === null) return null;
  return {
    customer,
    look: async (app) => {
      const pack = await readPackOfSession(app, session_id);
      return pack && ((tx, { user_id }) => takeOverPack(app, tx, user_id, pack));
    },
  };
};

const ofCharge = (object: object): Subject | null => payment(object, idIn(object, "customer"));

/** A dispute does not name the customer. */
const ofDispute = async (object: object, app: App): Promise<Subject | null> => {
  const payment_intent = idIn(object, "payment_intent");
  const page = payment_intent === null ? null : await pageOfPayment(app, payment_intent);
  return page && payment(object, idIn(page, "customer"));
};

function payment(object: object, customer: string | null): Subject | null {
  const payment_intent = idIn(object, "payment_intent");
  if (customer === null || payment_intent === null) return null;
  return {
    customer,
    look: async (app) => {
      const pack = await readPackOfPayment(app, payment_intent);
      return pack && ((tx, { user_id }) => takeOverPack(app, tx, user_id, pack));
    },
  };
}

type Reading = (object: object, app: App) => Subject | null | Promise<Subject | null>;

const SUBJECTS = new Map<string, Reading>([
  ["checkout.session.completed", ofSession],
  ["checkout.session.async_payment_succeeded", ofSession],
  ["customer.subscription.created", ofSubscription],
  ["customer.subscription.updated", ofSubscription],
  ["customer.subscription.paused", ofSubscription],
  ["customer.subscription.resumed", ofSubscription],
  ["customer.subscription.deleted", ofSubscription],
  ["customer.deleted", (object) => subscriber(idIn(object, "id"))],
  ["invoice.paid", ofSubscription],
  ["charge.refunded", ofCharge],
  ["charge.dispute.created", ofDispute],
  ["charge.dispute.closed", ofDispute],
]);

function subscriber(customer: string | null): Subject | null {
  if (customer === null) return null;
  return {
    customer,
    look: async (app, before) => {
      const standing = await readStanding(app, before);
      return (tx, account) => takeOver(app, tx, account, standing);
    },
  };
}

/** The id in a member that holds either an id or the whole object. */
function idIn(object: object, name: string): string | null {
  const value = member(object, name);
  const id = typeof value === "object" ? member(value, "id") : value;
  return typeof id === "string" ? id : null;
}

async function isSeen(db: Db, { id }: Stripe.Event): Promise<boolean> {
  const row = await db.selectFrom("billing_events").select("id").where("id", "=", id).executeTakeFirst();
  return row !== undefined;
}
