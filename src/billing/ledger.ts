import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { LedgerRow, UserRow } from "../db/schema.ts";
import { planLimits } from "./plans.ts";

/** What one finished run costs, in credits. */
export const RUN_CREDITS = 1;

type Account = Pick<UserRow, "id" | "plan">;

/** Takes one credit for a run that is being accepted. False, with nothing taken, when none is left. */
export async function reserveCredit(app: App, tx: Db, user: Account, message_id: string): Promise<boolean> {
  const remaining = await openPeriod(app, tx, user);
  if (remaining < RUN_CREDITS) return false;
  await append(app, tx, { user_id: user.id, kind: "reserve", amount: -RUN_CREDITS, message_id });
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
  const last = await lastRow(db, user.id, periodOf(app.now()));
  return last?.balance ?? planLimits(app.config, user.plan).credits;
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
  const last = await lastRow(tx, user.id, periodOf(app.now()));
  if (last) return last.balance;
  const amount = planLimits(app.config, user.plan).credits;
  await append(app, tx, { user_id: user.id, kind: "grant", amount, message_id: null });
  return amount;
}

async function endReserve(
  app: App,
  tx: Db,
  message: { id: string; user_id: string },
  kind: "settle" | "release",
): Promise<void> {
  const reserve = await tx
    .selectFrom("ledger")
    .select(["amount", "period"])
    .where("message_id", "=", message.id)
    .where("kind", "=", "reserve")
    .executeTakeFirst();
  if (!reserve) return;
  const amount = kind === "release" ? -reserve.amount : 0;
  const { id: message_id, user_id } = message;
  await append(app, tx, { user_id, kind, amount, message_id, period: reserve.period });
}

type Entry = Pick<LedgerRow, "user_id" | "kind" | "amount" | "message_id"> & { period?: string };

async function append(app: App, tx: Db, entry: Entry): Promise<void> {
  const now = app.now();
  const period = entry.period ?? periodOf(now);
  const last = await lastRow(tx, entry.user_id, period);
  const balance = (last?.balance ?? 0) + entry.amount;
  await tx
    .insertInto("ledger")
    .values({ ...entry, period, balance, created: now })
    .execute();
}

function lastRow(db: Db, user_id: string, period: string) {
  return db
    .selectFrom("ledger")
    .select("balance")
    .where("user_id", "=", user_id)
    .where("period", "=", period)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
}
