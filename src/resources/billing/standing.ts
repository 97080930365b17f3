import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { LedgerRow, UserRow } from "../../db/schema.ts";
import { calendarMonth, type Period, periodOf } from "./period.ts";
import { planLimits } from "./plans.ts";

/** Stands in place of a period for credits that were bought, which do not end with one. */
export const BOUGHT = "topup";

export interface Standing {
  user_id: string;
  plan: UserRow["plan"];
  period: Period;
  /** What the ledger says was given in this period; null before its first row. */
  given: number | null;
  balance: number;
  /** What the plan gives, and never less than what is used. */
  allowance: number;
  left: number;
  bought: number;
  /** Whether the plan has no cap. */
  unlimited: boolean;
}

/**
 * The allowance where a plan has no cap, given anew each time it is used up: it fits into the integers of any client.
 */
const WITHOUT_CAP = 1_000_000_000;

/** Reads what an account's credits are now, in one query because every call asks twice. */
export async function standingOf(app: App, db: Db, { id: user_id }: Pick<UserRow, "id">): Promise<Standing> {
  const month = calendarMonth(app.now());
  const [row = NOBODY] = await standingRow(db, { user_id, month: month.key });
  const period = periodOf(row, app.now());
  const [purse = NOBODY] =
    period.key === month.key ? [row] : await purseRow(db, { user_id, period: period.key });
  const { given, balance } = purse;
  // The plan may give other credits than the ledger says, as the operator may change it at any time: the ledger
  // learns of it with the next reserve.
  const used = (given ?? 0) - (balance ?? 0);
  const { credits } = planLimits(app.config, row.plan);
  const unlimited = credits === "unlimited";
  const given_by_plan = unlimited ? (Math.floor(used / WITHOUT_CAP) + 1) * WITHOUT_CAP : credits;
  const allowance = Math.max(given_by_plan, used);
  return {
    user_id,
    plan: row.plan,
    period,
    given,
    balance: balance ?? 0,
    allowance,
    left: allowance - used,
    bought: row.bought ?? 0,
    unlimited,
  };
}

/** The standing of an account that was deleted meanwhile. */
const NOBODY = {
  plan: "free",
  interval: null,
  period_start: null,
  period_end: null,
  given: null,
  balance: null,
  bought: null,
} as const;

const standingRow = prepared((db, key: { user_id: string; month: string }) => {
  const { user_id, month: period } = key;
  return db
    .selectFrom("users")
    .leftJoin("billing_accounts as paid", "paid.user_id", "users.id")
    .select(["users.plan", "paid.interval", "paid.period_start", "paid.period_end"])
    .select([
      givenIn(db, { user_id, period }).as("given"),
      balanceOf(db, { user_id, period }).as("balance"),
      balanceOf(db, { user_id, period: BOUGHT }).as("bought"),
    ])
    .where("users.id", "=", user_id);
});

export const purseRow = prepared((db, key: PurseKey) =>
  db.selectNoFrom([givenIn(db, key).as("given"), balanceOf(db, key).as("balance")]),
);

type PurseKey = Pick<LedgerRow, "user_id" | "period">;

/** What the plan gave in a period, without what was spent of it or carried over. */
function givenIn(db: Db, key: PurseKey) {
  return (
    db
      .selectFrom("ledger")
      .select((eb) => eb.fn.sum<number | null>("amount").as("amount"))
      .where("user_id", "=", key.user_id)
      .where("period", "=", key.period)
      // These are word for word the conditions of the index on such rows, so that SQLite uses it.
      .where("message_id", "is", null)
      .where("reference", "is", null)
  );
}

function balanceOf(db: Db, key: PurseKey) {
  return db
    .selectFrom("ledger")
    .select("balance")
    .where("user_id", "=", key.user_id)
    .where("period", "=", key.period)
    .orderBy("id", "desc")
    .limit(1);
}
