import type { Usage } from "../../api/shapes.ts";
import { useMoney } from "../../ui/money.ts";
import { Card } from "../../ui/page.tsx";
import { Bar } from "./shares.tsx";

type Costs = Usage["costs"];

const month_name = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" });

/** What models have cost in this month, and the budgets; nothing where neither is known. */
export function MonthCosts({ costs }: { costs: Costs }) {
  const money = useMoney();
  const { cost, monthly_budget: budget, inboxes, connections } = costs;
  const isKnown = cost > 0 || budget !== null || inboxes.length > 0 || connections.length > 0;
  if (!isKnown) return null;
  return (
    <Card title={`What models cost in ${month_name.format(Date.parse(costs.month))}`}>
      <div className="grid gap-4">
        <div className="grid gap-2">
          <p className="text-2xl font-semibold">{money(cost)}</p>
          {budget !== null && <Bar share={shareOf(cost, budget)} />}
          <p className="text-sm text-soft">
            {budget === null
              ? "As far as their prices are known, whatever time is chosen above."
              : `Of the ${money(budget)} that your account may spend in a month (UTC).`}
          </p>
        </div>
        <div className="grid gap-x-8 gap-y-4 lg:grid-cols-2">
          <Rows
            what="Inbox"
            rows={inboxes.map((row) => ({ row, id: row.inbox_id, others: "Deleted inboxes" }))}
          />
          <Rows
            what="Connection"
            rows={connections.map((row) => ({
              row,
              id: row.connection_id,
              others: "The server's own, and deleted ones",
            }))}
          />
        </div>
      </div>
    </Card>
  );
}

function shareOf(cost: number, budget: number): number {
  return budget === 0 ? 1 : Math.min(1, cost / budget);
}

interface Row {
  row: Pick<Costs["inboxes"][number], "label" | "cost" | "monthly_budget">;
  id: string | null;
  /** What those are called that are gone. */
  others: string;
}

function Rows({ what, rows }: { what: string; rows: Row[] }) {
  const money = useMoney();
  if (rows.length === 0) return null;
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead>
          <tr className="text-left text-soft">
            {[what, "Cost", "Budget"].map((name) => (
              <th key={name} scope="col" className="py-1 pr-3 font-medium last:pr-0">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ row: { label, cost, monthly_budget }, id, others }) => (
            <tr key={id ?? ""} className="border-t border-line">
              <th scope="row" className="w-full py-2 pr-3 text-left font-normal wrap-anywhere">
                {id === null ? others : label || "Without a name"}
              </th>
              <td className="py-2 pr-3 tabular-nums">{money(cost)}</td>
              <td className="py-2 tabular-nums">{monthly_budget === null ? "–" : money(monthly_budget)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
