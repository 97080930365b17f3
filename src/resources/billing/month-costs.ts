import type { App } from "../../app.ts";
import type { UserRow } from "../../db/schema.ts";
import { asAmount } from "../../lib/money.ts";
import { costsOfMonth, monthAt } from "./budgets.ts";

interface Holder {
  id: string;
  label: string;
  monthly_budget: number | null;
}

/** What models have cost in this month (UTC), the dearest first, beside the budgets that there are. */
export async function monthCosts(app: App, user: UserRow) {
  const month = monthAt(app.now());
  const costs = await costsOfMonth(app.db, { user_id: user.id, month });
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
    inboxes: byHolder(costs, inboxes, "inbox_id").map(({ id, ...rest }) => ({ inbox_id: id, ...rest })),
    connections: byHolder(costs, connections, "connection_id").map(({ id, ...rest }) => ({
      connection_id: id,
      ...rest,
    })),
  };
}

type Cost = Awaited<ReturnType<typeof costsOfMonth>>[number];

function sumOf(costs: Cost[]): number {
  return costs.reduce((sum, { cost }) => sum + cost, 0);
}

/** Those that have cost something or have a budget; the others, such as are gone, together without an id. */
function byHolder(costs: Cost[], holders: Holder[], column: "inbox_id" | "connection_id") {
  const known = new Map(holders.map((holder) => [holder.id, holder]));
  const spent = Map.groupBy(costs, (cost) => (known.has(cost[column]) ? cost[column] : null));
  const ids = new Set([
    ...spent.keys(),
    ...holders.filter((one) => one.monthly_budget !== null).map(({ id }) => id),
  ]);
  const shown = [...ids].map((id) => {
    const holder = known.get(id ?? "");
    return {
      id,
      label: holder?.label ?? null,
      cost: asAmount(sumOf(spent.get(id) ?? [])),
      monthly_budget: asAmount(holder?.monthly_budget ?? null),
    };
  });
  return shown.toSorted((one, other) => other.cost - one.cost);
}
