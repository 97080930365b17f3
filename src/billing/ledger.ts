import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { LedgerRow, UserRow } from "../db/schema.ts";
import { currentPeriod } from "./period.ts";
import { planLimits } from "./plans.ts";

/** What one finished run costs, in credits. */
export const RUN_CREDITS = 1;

/** In place of a period: what was bought does not end with one. */
const BOUGHT = "topup";

type Account = Pick<UserRow, "id" | "plan">;

/**
 * Takes one credit for a run that is being accepted: of the period's allowance, else of what was bought. False, with
 * nothing taken, when none is left.
 */
export async function reserveCredit(app: App, tx: Db, user: Account, message_id: string): Promise<boolean> {
  const allowance = await openPeriod(app, tx, user);
  const purse = allowance.balance < RUN_CREDITS ? await boughtPurse(tx, user.id) : allowance;
  if (purse.balance < RUN_CREDITS) return false;
  await append(app, tx, purse, { kind: "reserve", amount: -RUN_CREDITS, message_id });
  return true;
}

/** Makes the reserve of a run final. */
export async function settleCredit(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
): Promise<void> {
  await endReserve(app, tx, message, "settle");
}

/** Gives the reserve of a run back, to where it was taken from. */
export async function releaseCredit(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
): Promise<void> {
  await endReserve(app, tx, message, "release");
}

/** Adds credits that were bought. False, with nothing added, if this payment has been counted already. */
export async function topUp(
  app: App,
  tx: Db,
  user_id: string,
  payment: { credits: number; reference: string },
): Promise<boolean> {
  return changeBought(app, tx, user_id, {
    kind: "topup",
    amount: payment.credits,
    reference: payment.reference,
  });
}

/**
 * Takes back credits whose payment was returned, as far as they are not spent. False, with nothing taken, if this
 * return has been counted already.
 */
export async function takeBackTopUp(
  app: App,
  tx: Db,
  user_id: string,
  returned: { credits: number; reference: string },
): Promise<boolean> {
  return changeBought(app, tx, user_id, {
    kind: "adjust",
    amount: -returned.credits,
    reference: returned.reference,
  });
}

/**
 * Makes this period's allowance that of the plan which `user` has now; what is used stays used. An account that has
 * not spent anything in this period gets the allowance of its plan anyway.
 */
export async function adjustAllowance(
  app: App,
  tx: Db,
  user: Account,
  { reason }: { reason: string },
): Promise<void> {
  const { key: period } = await currentPeriod(app, tx, user);
  const given = await givenIn(tx, { user_id: user.id, period });
  if (given === undefined) return;
  const purse = await purseOf(tx, { user_id: user.id, pool: "allowance", period });
  const used = given - purse.balance;
  const amount = Math.max(planLimits(app.config, user.plan).credits, used) - given;
  if (amount === 0) return;
  await append(app, tx, purse, { kind: "adjust", amount });
  app.log.info({ user_id: user.id, plan: user.plan, amount, reason }, "allowance adjusted");
}

/** Credits that an account can spend now. */
export async function remainingCredits(app: App, db: Db, user: Account): Promise<number> {
  const { key: period } = await currentPeriod(app, db, user);
  const [last] = await lastRow(db, { user_id: user.id, period });
  const bought = await boughtPurse(db, user.id);
  return (last?.balance ?? planLimits(app.config, user.plan).credits) + bought.balance;
}

/** When the allowance of an account is renewed, in unix seconds. */
export async function resetsAt(app: App, db: Db, user: Account): Promise<number> {
  return (await currentPeriod(app, db, user)).end;
}

/** The credits of an account, as its owner sees them: `remaining` is `allowance` - `used` + `topup`. */
export async function creditsOf(app: App, db: Db, user: Account) {
  const { key: period, start, end } = await currentPeriod(app, db, user);
  const key = { user_id: user.id, period };
  const allowance = (await givenIn(db, key)) ?? planLimits(app.config, user.plan).credits;
  const [last] = await lastRow(db, key);
  const left = last?.balance ?? allowance;
  const { balance: topup } = await boughtPurse(db, user.id);
  return {
    allowance,
    used: allowance - left,
    topup,
    remaining: left + topup,
    period_start: start,
    resets_at: end,
  };
}

/** Where credits are taken from and given back to, and what is in it. */
type Purse = Pick<LedgerRow, "user_id" | "pool" | "period" | "balance">;

/** The allowance of the current period, which begins with its grant. */
async function openPeriod(app: App, tx: Db, user: Account): Promise<Purse> {
  const { key: period } = await currentPeriod(app, tx, user);
  const [last] = await lastRow(tx, { user_id: user.id, period });
  const purse: Purse = { user_id: user.id, pool: "allowance", period, balance: last?.balance ?? 0 };
  if (last) return purse;
  const { plan } = await tx
    .selectFrom("users")
    .select("plan")
    .where("id", "=", user.id)
    .executeTakeFirstOrThrow();
  const amount = planLimits(app.config, plan).credits;
  await append(app, tx, purse, { kind: "grant", amount });
  return { ...purse, balance: amount };
}

function boughtPurse(db: Db, user_id: string): Promise<Purse> {
  return purseOf(db, { user_id, pool: "topup", period: BOUGHT });
}

async function purseOf(db: Db, purse: Omit<Purse, "balance">): Promise<Purse> {
  const [last] = await lastRow(db, { user_id: purse.user_id, period: purse.period });
  return { ...purse, balance: last?.balance ?? 0 };
}

async function changeBought(
  app: App,
  tx: Db,
  user_id: string,
  change: { kind: "topup" | "adjust"; amount: number; reference: string },
): Promise<boolean> {
  const known = await tx
    .selectFrom("ledger")
    .select("id")
    .where("reference", "=", change.reference)
    .executeTakeFirst();
  if (known) return false;
  const purse = await boughtPurse(tx, user_id);
  await append(app, tx, purse, { ...change, amount: Math.max(change.amount, -purse.balance) });
  return true;
}

/** A run ends once: what has been settled or released stays so. */
async function endReserve(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
  kind: "settle" | "release",
): Promise<void> {
  const [reserve, ended] = await entriesOf(tx, { message_id: message.id });
  if (!reserve || ended) return;
  const { pool, period } = reserve;
  const purse = await purseOf(tx, { user_id: message.user_id, pool, period });
  await append(app, tx, purse, {
    kind,
    amount: kind === "release" ? -reserve.amount : 0,
    message_id: message.id,
  });
}

type Entry = Pick<LedgerRow, "kind" | "amount"> & Partial<Pick<LedgerRow, "message_id" | "reference">>;

async function append(app: App, tx: Db, purse: Purse, entry: Entry): Promise<void> {
  const { user_id, pool, period } = purse;
  const { kind, amount, message_id = null, reference = null } = entry;
  const balance = purse.balance + amount;
  const created = app.now();
  await insertRow(tx, "ledger", {
    user_id,
    kind,
    amount,
    balance,
    pool,
    period,
    message_id,
    reference,
    created,
  });
}

/** What was given in a period, corrections included; undefined before it has begun. */
async function givenIn(db: Db, key: { user_id: string; period: string }): Promise<number | undefined> {
  const [row] = await givenRow(db, key);
  return row?.amount ?? undefined;
}

const givenRow = prepared((db, key: { user_id: string; period: string }) =>
  db
    .selectFrom("ledger")
    .select((eb) => eb.fn.sum<number | null>("amount").as("amount"))
    .where("user_id", "=", key.user_id)
    .where("period", "=", key.period)
    // Word for word the condition of their index.
    .where("message_id", "is", null),
);

/** The reserve of a run, and behind it how it ended. */
const entriesOf = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("ledger")
    .select(["amount", "pool", "period"])
    .where("message_id", "=", key.message_id)
    .orderBy("id"),
);

const lastRow = prepared((db, key: { user_id: string; period: string }) =>
  db
    .selectFrom("ledger")
    .select("balance")
    .where("user_id", "=", key.user_id)
    .where("period", "=", key.period)
    .orderBy("id", "desc")
    .limit(1),
);
