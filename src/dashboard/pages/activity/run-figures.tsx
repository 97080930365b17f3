import type { ReplayCard } from "../../api/shapes.ts";
import { figure } from "../../ui/figure.ts";
import { useMoney } from "../../ui/money.ts";

/** The columns of `RunFigures`. */
export const RUN_FIGURES = ["Cost", "Seconds", "Tokens"];

/** The head of a table of runs. */
export function RunColumns({ names }: { names: string[] }) {
  return (
    <thead className="text-soft">
      <tr>
        {names.map((name) => (
          <th key={name} scope="col" className="py-1 pr-4 font-medium whitespace-nowrap">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** What a run has used, in cells of a table. */
export function RunFigures({
  run: { cost, duration_ms, usage },
}: {
  run: Pick<ReplayCard, "cost" | "duration_ms" | "usage">;
}) {
  const money = useMoney();
  return (
    <>
      <td className="py-2 pr-4 whitespace-nowrap">{cost === null ? "–" : money(cost)}</td>
      <td className="py-2 pr-4 whitespace-nowrap">{duration_ms === null ? "–" : secondsOf(duration_ms)}</td>
      <td className="py-2 pr-4 whitespace-nowrap">
        {usage ? `${figure(usage.input_tokens)} in, ${figure(usage.output_tokens)} out` : "–"}
      </td>
    </>
  );
}

function secondsOf(ms: number): string {
  return ms < 100 ? "under 0.1" : (ms / 1_000).toFixed(1);
}
