import type { App } from "../../app.ts";
import { afterCommit, type Db, unlessCommitted } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { InboxRow } from "../../db/schema.ts";
import { userById } from "../../db/users.ts";
import { tellOwnerOnce } from "../../jobs/tell-later.ts";
import { moneyWords } from "../../lib/money.ts";
import { addCost, noteCost, saveCosts } from "./kept-costs.ts";

/** The part of a budget from which on its owner is told that it comes to its end. */
const LOW = 0.8;

/** Who has a budget. */
export type BudgetOf = "account" | "connection" | "inbox";

export interface Budget {
  of: BudgetOf;
  id: string;
  /** Millionths of the currency. */
  limit: number;
}

/** Who asks a model, and who answers. */
export interface Spender {
  user_id: string;
  inbox_id: string;
  connection_id: string;
}

/** Money set aside for a request that is under way. It is kept in memory alone: a server that dies has given it back. */
export interface Reserve {
  month: string;
  budgets: Budget[];
  amount: number;
}

/** A budget that a request would go beyond. */
export interface Exceeded {
  budget: Budget;
  /** Spent or set aside in this month. */
  used: number;
  /** What the request may cost; 0 where nobody knows. */
  amount: number;
}

/** The month of a moment (Unix seconds) in UTC: "2026-11". */
export function monthAt(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(0, "YYYY-MM".length);
}

/** The budgets that a request counts against, the narrowest first; none where nobody has set one. */
export async function budgetsFor(
  db: Db,
  inbox: Pick<InboxRow, "id" | "user_id" | "monthly_budget">,
  connection: { id: string; monthly_budget: number | null },
): Promise<Budget[]> {
  const [user] = await userById(db, { id: inbox.user_id });
  const all = [
    { of: "inbox" as const, id: inbox.id, limit: inbox.monthly_budget },
    { of: "connection" as const, id: connection.id, limit: connection.monthly_budget },
    { of: "account" as const, id: inbox.user_id, limit: user?.monthly_budget ?? null },
  ];
  return all.flatMap(({ limit, ...budget }) => (limit === null ? [] : [{ ...budget, limit }]));
}

/**
 * Sets money aside for a request, or returns the first budget that it would go beyond, of which the owner is then told. One operation
 * follows the other here, so that requests at once never count on the same money.
 */
export function reserveCost(
  app: App,
  spender: Spender,
  { budgets, amount }: Pick<Reserve, "budgets" | "amount">,
): Promise<Reserve | { exceeded: Exceeded }> {
  return app.write(
    async (tx) => {
      const month = monthAt(app.now());
      if (app.costs.unsaved.size > 0) await saveCosts(app, tx);
      const spent = await spentBy(tx, { ...spender, month });
      for (const budget of budgets) {
        const used = spent[budget.of] + (app.costs.reserved.get(keyOf(month, budget)) ?? 0);
        if (used < budget.limit && used + amount <= budget.limit) continue;
        await tellOfBudget(app, tx, spender.user_id, { kind: "budget_used_up", month, budget });
        return { exceeded: { budget, used, amount } };
      }
      const reserve = { month, budgets, amount };
      hold(app, reserve, amount);
      unlessCommitted(tx, () => hold(app, reserve, -amount));
      return reserve;
    },
    { promises: false },
  );
}

/** Notes what a request has cost, in place of what was set aside for it. What the disk refuses is written later. */
export async function settleCost(
  app: App,
  spender: Spender,
  { cost, reserve }: { cost: number; reserve: Reserve | undefined },
): Promise<void> {
  if (reserve === undefined) {
    if (cost > 0) noteCost(app, { ...spender, month: monthAt(app.now()), cost });
    return;
  }
  const { month, amount } = reserve;
  if (cost === 0) return hold(app, reserve, -amount);
  await app.insist(
    async (tx) => {
      await addCost(tx, { ...spender, month, cost });
      afterCommit(tx, () => hold(app, reserve, -amount));
      await tellIfLow(app, tx, spender, reserve);
    },
    { user_id: spender.user_id, cost },
  );
}

async function tellIfLow(app: App, tx: Db, spender: Spender, { month, budgets }: Reserve): Promise<void> {
  const spent = await spentBy(tx, { ...spender, month });
  for (const budget of budgets) {
    const used = spent[budget.of];
    if (used < budget.limit * LOW) continue;
    const kind = used < budget.limit ? "budget_low" : "budget_used_up";
    await tellOfBudget(app, tx, spender.user_id, { kind, month, budget });
  }
}

/** Tells the owner of a budget, once a month of each state of each. */
async function tellOfBudget(
  app: App,
  tx: Db,
  user_id: string,
  {
    kind,
    month,
    budget: { of, id },
  }: { kind: "budget_low" | "budget_used_up"; month: string; budget: Budget },
): Promise<void> {
  await tellOwnerOnce(app, tx, { user_id, kind, budget: { of, id, month } }, `${month}-31 ${of} ${id}`);
}

function keyOf(month: string, { of, id }: Pick<Budget, "of" | "id">): string {
  return `${month} ${of} ${id}`;
}

function hold(app: App, { month, budgets }: Reserve, amount: number): void {
  for (const budget of budgets) {
    const key = keyOf(month, budget);
    const held = (app.costs.reserved.get(key) ?? 0) + amount;
    if (held === 0) app.costs.reserved.delete(key);
    else app.costs.reserved.set(key, held);
  }
}

/** What the month has cost so far: the account, and of that this inbox and this connection. */
export async function spentBy(db: Db, by: Spender & { month: string }): Promise<Record<BudgetOf, number>> {
  const [sums] = await sumsOfMonth(db, by);
  return { account: sums?.account ?? 0, inbox: sums?.inbox ?? 0, connection: sums?.connection ?? 0 };
}

const sumsOfMonth = prepared((db, by: Spender & { month: string }) =>
  db
    .selectFrom("model_costs")
    .select((eb) => {
      const sumWhere = (column: "inbox_id" | "connection_id", id: string) =>
        eb.fn.sum<number | null>(eb.case().when(column, "=", id).then(eb.ref("cost")).else(0).end());
      return [
        eb.fn.sum<number | null>("cost").as("account"),
        sumWhere("inbox_id", by.inbox_id).as("inbox"),
        sumWhere("connection_id", by.connection_id).as("connection"),
      ];
    })
    .where("user_id", "=", by.user_id)
    .where("month", "=", by.month),
);

/** What each inbox and each connection of an account has cost in a month. */
export const costsOfMonth = prepared((db, of: { user_id: string; month: string }) =>
  db
    .selectFrom("model_costs")
    .select(["inbox_id", "connection_id", "cost"])
    .where("user_id", "=", of.user_id)
    .where("month", "=", of.month),
);

const WHERE: Record<BudgetOf, string> = {
  account: "in your settings",
  connection: "on the page of the connection",
  inbox: "on the page of the inbox",
};

/** Says which budget is in the way, how large it is, what of it is used, and what can be done. */
export async function exceededWords(
  app: App,
  { user_id }: Pick<Spender, "user_id">,
  { budget, used, amount }: Exceeded,
): Promise<string> {
  const { currency } = app.config.costs;
  const whose = await budgetName(app.db, user_id, budget);
  const may_cost = amount === 0 ? "" : `, and this may cost ${moneyWords(amount, currency)}`;
  return `The model was not asked, because that could have gone beyond the monthly budget of ${whose}: ${moneyWords(budget.limit, currency)}, of which ${moneyWords(used, currency)} are used or set aside${may_cost}. Raise it ${WHERE[budget.of]}, choose a model that costs less, or wait for the next month (UTC).`;
}

/** How large a budget is now; null where there is none any more. */
export async function limitOf(
  db: Db,
  user_id: string,
  { of, id }: Pick<Budget, "of" | "id">,
): Promise<number | null> {
  const [user] = await userById(db, { id: user_id });
  return of === "account"
    ? (user?.monthly_budget ?? null)
    : ((await holderOf(db, user_id, { of, id }))?.limit ?? null);
}

/** "your account", or the name of what has the budget. */
export async function budgetName(
  db: Db,
  user_id: string,
  { of, id }: Pick<Budget, "of" | "id">,
): Promise<string> {
  if (of === "account") return "your account";
  return `the ${of} “${(await holderOf(db, user_id, { of, id }))?.label ?? "that is gone"}”`;
}

function holderOf(
  db: Db,
  user_id: string,
  { of, id }: Pick<Budget, "of" | "id">,
): Promise<{ label: string; limit: number | null } | undefined> {
  return db
    .selectFrom(of === "inbox" ? "inboxes" : "connections")
    .select(["label", "monthly_budget as limit"])
    .where("id", "=", id)
    .where("user_id", "=", user_id)
    .executeTakeFirst();
}
