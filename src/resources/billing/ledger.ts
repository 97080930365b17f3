import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { insertRow, prepared } from "../../db/prepared.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { wakeFirst } from "../../jobs/credit-waits.ts";
import { isStorageFault } from "../../db/storage-faults.ts";
import type { LedgerRow, UserRow } from "../../db/schema.ts";
import type { Period } from "./period.ts";
import type { Whose } from "./storage.ts";
import { BOUGHT, purseRow, type Standing, standingOf } from "./standing.ts";

/** What one finished run costs, in credits. */
export const RUN_CREDITS = 1;

/**
 * The share of a period's allowance that is kept for the owner and listed senders: whoever writes to an account must
 * not end its work.
 */
const HOUSEHOLD_SHARE = 0.2;

type Account = Pick<UserRow, "id">;

/** The credits of an allowance that the mail of others may not spend. */
export function keptForHousehold(allowance: number): number {
  return Math.floor(allowance * HOUSEHOLD_SHARE);
}

/**
 * Takes one credit for a run that is being accepted: of the period's allowance, else of what was bought. False, with
 * nothing taken, when none is left that may be spent on a run of theirs.
 */
export async function reserveCredit(
  app: App,
  tx: Db,
  user: Account,
  { message_id, whose = "household" }: { message_id: string; whose?: Whose },
): Promise<boolean> {
  const standing = await standingOf(app, tx, user);
  if (lackingFor(standing, whose) > 0) return false;
  const purse = standing.left < RUN_CREDITS ? boughtPurse(user, standing) : await fit(app, tx, standing);
  await append(app, tx, purse, { kind: "reserve", amount: -RUN_CREDITS, message_id });
  return true;
}

/** The credits that are lacking for a run of theirs. */
function lackingFor({ unlimited, allowance, left, bought }: Standing, whose: Whose): number {
  const kept = whose === "household" || unlimited ? 0 : keptForHousehold(allowance);
  return RUN_CREDITS + kept - left - bought;
}

/**
 * Whether there would be a credit for a run of theirs but for what is held for runs that have not ended: that may be given back, as
 * where a rule leaves them out.
 */
export async function isMerelyHeld(app: App, tx: Db, user: Account, whose: Whose): Promise<boolean> {
  const lacking = lackingFor(await standingOf(app, tx, user), whose);
  const [held] = await heldFor(tx, { user_id: user.id });
  return (held?.credits ?? 0) >= lacking;
}

/** Counts the reserves of runs that have not ended. */
const heldFor = prepared((db, { user_id }: { user_id: string }) =>
  db
    .selectFrom("ledger")
    .select((eb) => eb.fn.countAll<number>().as("credits"))
    .where("kind", "=", "reserve")
    .where("message_id", "in", (eb) =>
      eb
        .selectFrom("messages")
        .select("messages.id")
        .where("messages.user_id", "=", user_id)
        .where(NOT_DONE)
        .where("state", "=", "received")
        .unionAll(
          eb
            .selectFrom("replays")
            .select("replays.id")
            .where("replays.user_id", "=", user_id)
            .where("replays.state", "=", "received"),
        ),
    ),
);

/** Makes the reserve of a run final. */
export async function settleCredit(app: App, tx: Db, message: { id: string }): Promise<void> {
  await end(app, tx, { message_id: message.id, kind: "settle", back: 0 });
}

/** Releases the reserve of a run to the credits that it was taken from. */
export async function releaseCredit(app: App, tx: Db, message: { id: string }): Promise<void> {
  await end(app, tx, { message_id: message.id, kind: "release", back: -1 });
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

/** Adds credits again that `takeBackTopUp` took. False, with nothing added, if this has been counted already. */
export async function giveBackTopUp(
  app: App,
  tx: Db,
  user_id: string,
  kept: { credits: number; reference: string },
): Promise<boolean> {
  return changeBought(app, tx, user_id, { kind: "adjust", amount: kept.credits, reference: kept.reference });
}

/**
 * Sets this period's allowance to that of the account's present plan; what is used stays used. Nothing is written for
 * an account that has not spent anything in this period.
 */
export async function adjustAllowance(
  app: App,
  tx: Db,
  user: Account,
  { reason }: { reason: string },
): Promise<void> {
  const standing = await standingOf(app, tx, user);
  const { given, allowance, plan } = standing;
  if (given === null || given === allowance) return;
  await fit(app, tx, standing);
  app.log.info({ user_id: user.id, plan, amount: allowance - given, reason }, "allowance adjusted");
}

/** Counts once what was used in `from`, a period that ended before its time, in the present period too. */
export async function carryUsed(app: App, tx: Db, user: Account, from: Period): Promise<void> {
  const standing = await standingOf(app, tx, user);
  const reference = `${user.id} ${from.key} ${standing.period.key}`;
  if (from.key === standing.period.key || (await isCounted(tx, reference))) return;
  const [before] = await purseRow(tx, { user_id: user.id, period: from.key });
  const used = (before?.given ?? 0) - (before?.balance ?? 0);
  if (used <= 0) return;
  const { allowance, left } = standing;
  // All of it is counted, though this plan may give less: else a larger plan later would not know of it.
  const beyond = Math.max(0, used - left);
  const purse = await fit(app, tx, { ...standing, allowance: allowance + beyond, left: left + beyond });
  await append(app, tx, purse, { kind: "adjust", amount: -used, reference });
}

/** Credits that an account can spend now. */
export async function remainingCredits(app: App, db: Db, user: Account): Promise<number> {
  const { left, bought } = await standingOf(app, db, user);
  return left + bought;
}

export async function currentPeriod(app: App, db: Db, user: Account): Promise<Period> {
  return (await standingOf(app, db, user)).period;
}

/** When the allowance of an account is renewed, in unix seconds. */
export async function resetsAt(app: App, db: Db, user: Account): Promise<number> {
  return (await currentPeriod(app, db, user)).end;
}

/**
 * The credits of an account, as its owner sees them: `remaining` is `allowance` - `used` + `topup`. Where they are unlimited
 * the allowance is a number that is never used up, so that programs which compare it go on.
 */
export async function creditsOf(app: App, db: Db, user: Account) {
  const { allowance, left, bought, period, unlimited } = await standingOf(app, db, user);
  return {
    allowance,
    used: allowance - left,
    topup: bought,
    remaining: left + bought,
    unlimited,
    period_start: period.start,
    resets_at: period.end,
  };
}

/**
 * A purse: the credits of one account for one period, or those that were bought; reserves take from it and releases
 * give back to it.
 */
type Purse = Pick<LedgerRow, "user_id" | "pool" | "period" | "balance">;

function boughtPurse({ id: user_id }: Account, { bought }: Pick<Standing, "bought">): Purse {
  return { user_id, pool: "topup", period: BOUGHT, balance: bought };
}

/** The purse of the current period, once the ledger has the allowance that the plan gives. */
async function fit(app: App, tx: Db, standing: Standing): Promise<Purse> {
  const { user_id, given, allowance, left, period } = standing;
  const purse: Purse = { user_id, pool: "allowance", period: period.key, balance: standing.balance };
  const amount = allowance - (given ?? 0);
  if (given === null) await append(app, tx, purse, { kind: "grant", amount });
  else if (amount !== 0) await append(app, tx, purse, { kind: "adjust", amount });
  return { ...purse, balance: left };
}

async function changeBought(
  app: App,
  tx: Db,
  user_id: string,
  change: { kind: "topup" | "adjust"; amount: number; reference: string },
): Promise<boolean> {
  if (await isCounted(tx, change.reference)) return false;
  const [row] = await purseRow(tx, { user_id, period: BOUGHT });
  const purse = boughtPurse({ id: user_id }, { bought: row?.balance ?? 0 });
  await append(app, tx, purse, { ...change, amount: Math.max(change.amount, -purse.balance) });
  return true;
}

async function isCounted(tx: Db, reference: string): Promise<boolean> {
  const known = tx.selectFrom("ledger").select("id").where("reference", "=", reference);
  return (await known.executeTakeFirst()) !== undefined;
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

interface End {
  message_id: string;
  kind: "settle" | "release";
  /** The factor of the reserve's amount in the new entry: -1 undoes the reserve. */
  back: 0 | -1;
  now: number;
}

/** What a damaged row of the ledger costs is a credit, and never the result of a run, or the notice of its failure. */
async function end(app: App, tx: Db, how: Omit<End, "now">): Promise<void> {
  try {
    const [ended] = await endReserve(tx, { ...how, now: app.now() });
    if (ended) await wakeFirst(app, tx, ended.user_id);
  } catch (error) {
    if (isStorageFault(error)) throw error;
    const words = "the credit of a message stays as it is: its row in the ledger is damaged";
    app.log.error({ message_id: how.message_id, err: error }, words);
  }
}

/** Settles or releases a reserve, once: afterwards, or where nothing was reserved, nothing happens. */
const endReserve = prepared((db, end: End) =>
  db
    .insertInto("ledger")
    .columns(["user_id", "pool", "period", "message_id", "kind", "created", "amount", "balance"])
    .expression(
      db
        .selectFrom("ledger as reserve")
        .leftJoin("ledger as ended", (join) =>
          join
            .onRef("ended.message_id", "=", "reserve.message_id")
            .on("ended.kind", "in", ["settle", "release"]),
        )
        .where("reserve.message_id", "=", end.message_id)
        .where("reserve.kind", "=", "reserve")
        .where("ended.id", "is", null)
        .select((eb) => {
          const amount = eb("reserve.amount", "*", end.back);
          const balance = eb
            .selectFrom("ledger as last")
            .select("last.balance")
            .whereRef("last.user_id", "=", "reserve.user_id")
            .whereRef("last.period", "=", "reserve.period")
            .orderBy("last.id", "desc")
            .limit(1);
          return [
            "reserve.user_id",
            "reserve.pool",
            "reserve.period",
            "reserve.message_id",
            eb.val(end.kind).as("kind"),
            eb.val(end.now).as("created"),
            amount.as("amount"),
            eb(balance, "+", amount).as("balance"),
          ];
        }),
    )
    .returning("user_id"),
);
