import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { asAmount } from "../../lib/money.ts";
import { unsavedCosts } from "./kept-costs.ts";
import { costsOfMonth, monthAt } from "./budgets.ts";

interface Holder {
  id: string;
  label: string;
  monthly_budget: number | null;
}

/** What models have cost in this month (UTC), the dearest first, beside the budgets that there are. */
export async function monthCosts(app: App, user: UserRow) {
  const month = monthAt(app.now());
  const of = { user_id: user.id, month };
  const costs = [...(await costsOfMonth(app.db, of)), ...unsavedCosts(app, of)];
  const inboxes = await app.db
    .selectFrom("inboxes")
    .select(["id", "label", "monthly_budget"])
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .execute();
  const connections = await app.db
    .selectFrom("connections")
    .select(["id", "label", "monthly_budget"])
    .where("user_id", "=", user.id)
    .execute();
  return {
    month,
    currency: app.config.costs.currency,
    cost: asAmount(sumOf(costs)),
    monthly_budget: asAmount(user.monthly_budget),
    inboxes: dearest(costs, inboxes, "inbox_id", (inbox_id) => ({ inbox_id })),
    connections: dearest(costs, connections, "connection_id", (connection_id) => ({ connection_id })),
  };
}

type Cost = Awaited<ReturnType<typeof costsOfMonth>>[number];

function sumOf(costs: Cost[]): number {
  return costs.reduce((sum, { cost }) => sum + cost, 0);
}

/** Those that have cost something or have a budget; the others, such as are gone, together without an id. */
function dearest<Head extends object>(
  costs: Cost[],
  holders: Holder[],
  column: "inbox_id" | "connection_id",
  headOf: (id: string | null) => Head,
) {
  const known = new Map(holders.map((holder) => [holder.id, holder]));
  const spent = Map.groupBy(costs, (cost) => (known.has(cost[column]) ? cost[column] : null));
  const budgeted = holders.filter(({ monthly_budget }) => monthly_budget !== null);
  const shown = [...new Set([...spent.keys(), ...budgeted.map(({ id }) => id)])].map((id) => {
    const { label = null, monthly_budget = null } = known.get(id ?? "") ?? {};
    const cost = asAmount(sumOf(spent.get(id) ?? []));
    return Object.assign(headOf(id), { label, cost, monthly_budget: asAmount(monthly_budget) });
  });
  return shown.toSorted((one, other) => other.cost - one.cost);
}

/** What models have cost in each month, for the export. */
export async function costsEver(db: Db, { user_id }: { user_id: string }) {
  const rows = await db
    .selectFrom("model_costs")
    .select(["month", "inbox_id", "connection_id", "cost"])
    .where("user_id", "=", user_id)
    .orderBy("month")
    .execute();
  return rows.map(({ month, inbox_id, connection_id, cost }) => ({
    month,
    inbox_id,
    connection_id,
    cost: asAmount(cost),
  }));
}
