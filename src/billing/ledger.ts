import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { LedgerRow, UserRow } from "../db/schema.ts";
import { planLimits } from "./plans.ts";

/** What one finished run costs, in credits. */
export const RUN_CREDITS = 1;

type Account = Pick<UserRow, "id" | "plan">;

/** Takes one credit for a run that is being accepted. False, with nothing taken, when none is left. */
export async function reserveCredit(app: App, tx: Db, user: Account, message_id: string): Promise<boolean> {
  const remaining = await openPeriod(app, tx, user);
  if (remaining < RUN_CREDITS) return false;
  const entry = { user_id: user.id, message_id, kind: "reserve", amount: -RUN_CREDITS } as const;
  await append(app, tx, { ...entry, balance: remaining - RUN_CREDITS });
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

/** Gives the reserve of a run back. */
export async function releaseCredit(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
): Promise<void> {
  await endReserve(app, tx, message, "release");
}

/** Credits left in the current period (a calendar month, UTC). */
export async function remainingCredits(app: App, db: Db, user: Account): Promise<number> {
  const [last] = await lastRow(db, { user_id: user.id, period: periodOf(app.now()) });
  return last?.balance ?? planLimits(app.config, user.plan).credits;
}

/** The credits of the current period, as an account's owner sees them. */
export async function creditsOf(app: App, db: Db, user: Account) {
  const now = app.now();
  const key = { user_id: user.id, period: periodOf(now) };
  // A period begins with its grant.
  const [first] = await firstRow(db, key);
  const [last] = await lastRow(db, key);
  const allowance = first?.amount ?? planLimits(app.config, user.plan).credits;
  const remaining = last?.balance ?? allowance;
  return {
    allowance,
    used: Math.max(0, allowance - remaining),
    topup: 0,
    remaining,
    period_start: Date.parse(`${key.period}-01T00:00:00Z`) / 1_000,
    resets_at: periodEnd(now),
  };
}

/** Unix second at which the next period begins. */
export function periodEnd(now: number): number {
  const date = new Date(now * 1_000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / 1_000;
}

function periodOf(now: number): string {
  return new Date(now * 1_000).toISOString().slice(0, 7);
}

async function openPeriod(app: App, tx: Db, user: Account): Promise<number> {
  const [last] = await lastRow(tx, { user_id: user.id, period: periodOf(app.now()) });
  if (last) return last.balance;
  const amount = planLimits(app.config, user.plan).credits;
  await append(app, tx, { user_id: user.id, kind: "grant", amount, balance: amount, message_id: null });
  return amount;
}

async function endReserve(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
  kind: "settle" | "release",
): Promise<void> {
  const [reserve] = await reserveOf(tx, { message_id: message.id });
  if (!reserve) return;
  const amount = kind === "release" ? -reserve.amount : 0;
  const { id: message_id, user_id } = message;
  const [last] = await lastRow(tx, { user_id, period: reserve.period });
  const balance = (last?.balance ?? 0) + amount;
  await append(app, tx, { user_id, kind, amount, balance, message_id, period: reserve.period });
}

type Entry = Omit<LedgerRow, "id" | "period" | "created" | "pool" | "reference"> & { period?: string };

async function append(app: App, tx: Db, entry: Entry): Promise<void> {
  const now = app.now();
  await insertRow(tx, "ledger", {
    period: periodOf(now),
    pool: "allowance",
    reference: null,
    ...entry,
    created: now,
  });
}

const reserveOf = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("ledger")
    .select(["amount", "period"])
    .where("message_id", "=", key.message_id)
    .where("kind", "=", "reserve"),
);

const firstRow = prepared((db, key: { user_id: string; period: string }) =>
  db
    .selectFrom("ledger")
    .select("amount")
    .where("user_id", "=", key.user_id)
    .where("period", "=", key.period)
    .orderBy("id")
    .limit(1),
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
