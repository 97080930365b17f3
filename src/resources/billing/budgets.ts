import { ASSUMED_OUTPUT_TOKENS } from "../../ai/prices.ts";
import type { App } from "../../app.ts";
import { afterCommit, type Db, unlessCommitted } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { InboxRow, MessageRow } from "../../db/schema.ts";
import { userById } from "../../db/users.ts";
import { noteTold, tellOwnerLater, tellOwnerOnce } from "../../jobs/tell-later.ts";
import { moneyWords } from "../../lib/money.ts";
import { addCost, noteCost, saveCosts } from "./kept-costs.ts";
import { keptForHousehold } from "./ledger.ts";
import type { Whose } from "./storage.ts";

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

/** A request that is to be paid for: what it may cost, and who has caused it. */
interface Wanted extends Pick<Reserve, "budgets" | "amount"> {
  whose: Whose;
}

/** A budget that a request would go beyond. */
export interface Exceeded {
  budget: Budget;
  whose: Whose;
  /** Spent or set aside in this month. */
  used: number;
  /** What the request may cost; 0 where nobody knows. */
  amount: number;
  /** Wider budgets that it would go beyond as well. */
  also?: Budget[];
}

/** A refusal of money. `given_back`: resolves when some of what is set aside for others is, where there is room but for that. */
interface Refused {
  exceeded: Exceeded;
  given_back?: Promise<void>;
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

/** What may be spent of a budget: whoever writes to an account must not end its work, as with its credits. */
export function spendable({ limit }: Pick<Budget, "limit">, whose: Whose): number {
  return whose === "household" ? limit : limit - keptForHousehold(limit);
}

/**
 * Sets money aside for a request, or returns the first budget that it would go beyond. Where what is spent leaves no room for it, the
 * owner is told. One operation follows the other here, so that requests at once never count on the same money.
 */
export function reserveCost(
  app: App,
  spender: Spender,
  { budgets, amount, whose }: Wanted,
): Promise<Reserve | Refused> {
  return app.write(
    async (tx) => {
      const month = monthAt(app.now());
      if (app.costs.unsaved.size > 0) await saveCosts(app, tx);
      const spent = await spentBy(tx, { ...spender, month });
      const usedOf = (budget: Budget): number =>
        spent[budget.of] + (app.costs.reserved.get(keyOf(month, budget)) ?? 0);
      const fits = (budget: Budget, sum: number): boolean => {
        const most = spendable(budget, whose);
        return sum < most && sum + amount <= most;
      };
      const [budget, ...also] = budgets.filter((one) => !fits(one, usedOf(one)));
      if (budget !== undefined) {
        const exceeded = { budget, used: usedOf(budget), amount, whose };
        if (fits(budget, spent[budget.of]))
          return { exceeded: { ...exceeded, also }, given_back: givenBack(app, keyOf(month, budget)) };
        await tellOfBudget(app, tx, spender.user_id, { kind: "budget_used_up", month, ...exceeded });
        return { exceeded: { ...exceeded, also } };
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

interface Telling extends Partial<Exceeded> {
  kind: "budget_low" | "budget_used_up";
  month: string;
  budget: Budget;
}

/**
 * Tells the owner of a budget, once a month of each state of each, and again once it was changed. What it leaves undone from there on
 * is told from the next day on: this letter says already that it will be.
 */
async function tellOfBudget(
  app: App,
  tx: Db,
  user_id: string,
  { kind, month, budget, amount = 0, whose = "household" }: Telling,
): Promise<void> {
  const too_small = amount > spendable(budget, whose) ? { amount } : {};
  const { of, id, limit } = budget;
  const once = [`${month}-31`, of, id, limit, whose, ...Object.keys(too_small)].join(" ");
  const told = { of, id, limit, month, whose, ...too_small };
  const is_new = await tellOwnerOnce(app, tx, { user_id, kind, budget: told, once });
  if (is_new && kind === "budget_used_up") await noteTold(app, tx, { user_id, kind: "budget_undone" });
}

/** Has the owner told, once a day, of a mail or a run of a schedule if a budget has left it undone. */
export async function tellOfUndone(
  app: App,
  tx: Db,
  { user_id, state, source, schedule_id }: Pick<MessageRow, "user_id" | "state" | "source" | "schedule_id">,
): Promise<void> {
  // Whoever called was answered so.
  if (state !== "limited" || (source !== "email" && schedule_id === null)) return;
  await tellOwnerLater(app, tx, { user_id, kind: "budget_undone" });
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
    if (amount > 0) continue;
    app.costs.given_back.get(key)?.resolve();
    app.costs.given_back.delete(key);
  }
}

/** Resolves when some of what is set aside of a budget is given back. */
function givenBack({ costs }: App, key: string): Promise<void> {
  const known = costs.given_back.get(key) ?? Promise.withResolvers<void>();
  costs.given_back.set(key, known);
  return known.promise;
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
  { budget, used, amount, whose, also = [] }: Exceeded,
): Promise<string> {
  const { currency } = app.config.costs;
  const name = await budgetName(app.db, user_id, budget);
  const may_cost = amount === 0 ? "" : `, and this may cost ${moneyWords(amount, currency)}`;
  const most = spendable(budget, whose);
  const share = whose === "household" ? "" : ` ${shareWords(moneyWords(most, currency))}`;
  const mends = [
    `Raise it ${WHERE[budget.of]}`,
    "choose a model that costs less",
    ...(used < most && whose === "household" ? [SHORTER_ANSWERS] : []),
  ];
  const help =
    amount > most
      ? `To wait for the next month does not help, as that is more than all of ${whose === "household" ? "it" : "this share"}. ${orOf(mends)}.`
      : `${orOf([...mends, "wait for the next month (UTC)"])}.`;
  return `The model was not asked, because that could have gone beyond the monthly budget of ${name}: ${moneyWords(budget.limit, currency)}, of which ${moneyWords(used, currency)} are used or set aside${may_cost}.${share} ${help}${await alsoWords(app.db, user_id, also)}`;
}

/** Names the other budgets that are in the way, so that nobody mends one to meet the next. */
async function alsoWords(db: Db, user_id: string, also: Budget[]): Promise<string> {
  const names = await Promise.all(also.map((budget) => budgetName(db, user_id, budget)));
  if (names.length === 0) return "";
  return ` The monthly ${names.length === 1 ? "budget" : "budgets"} of ${names.join(" and of ")} ${names.length === 1 ? "is" : "are"} in the way as well.`;
}

/** How less is set aside for a request. */
export const SHORTER_ANSWERS = `have shorter answers, as with --max-tokens=500 (without it, ${ASSUMED_OUTPUT_TOKENS.toLocaleString("en")} tokens of an answer are set aside)`;

/** `most`: how much money the share is. */
export function shareWords(most: string): string {
  return `Mail of senders whom you have not listed may use ${most} of it: the rest is kept for your own work, and for senders whom you have listed.`;
}

/** "a, b, or c". */
export function orOf(ways: string[]): string {
  return ways.length < 3 ? ways.join(", or ") : `${ways.slice(0, -1).join(", ")}, or ${ways.at(-1)}`;
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
