import { useQuery } from "@tanstack/react-query";
import { connectionList } from "../../api/lists.ts";
import type { TestRunCard } from "../../api/shapes.ts";
import { Card } from "../../ui/page.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Time } from "../../ui/time.tsx";
import { RUN_FIGURES, RunColumns, RunFigures } from "../activity/run-figures.tsx";
import { RunTable } from "./run-table.tsx";
import { askedWords } from "./words.ts";

const COLUMNS = ["Run with", "Passed", ...RUN_FIGURES, "When"];

interface RunsProps {
  runs: TestRunCard[];
  chosen: string | undefined;
  choose: (id: string | undefined) => void;
}

/** The runs beside each other, and one of them message by message. */
export function Runs({ runs, chosen, choose }: RunsProps) {
  const { data: connections = [] } = useQuery(connectionList);
  const labelOf = (id: string): string =>
    connections.find((one) => one.id === id)?.label ?? "a model that was deleted";
  const run = runs.find(({ id }) => id === chosen) ?? runs[0];
  if (!run) return null;
  return (
    <Card title={runs.length === 1 ? "1 run" : `${runs.length} runs`}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
        <Scroll label="The runs">
          <table className="w-full text-left text-sm">
            <RunColumns names={COLUMNS} />
            <tbody>
              {runs.map((one) => (
                <tr key={one.id} className="border-t border-line">
                  <td className="min-w-32 py-2 pr-4">
                    <button
                      type="button"
                      aria-pressed={one.id === run.id}
                      onClick={() => choose(one.id)}
                      className="text-left wrap-anywhere text-accent underline aria-pressed:font-semibold"
                    >
                      {askedWords(one, labelOf)}
                    </button>
                  </td>
                  <td className="py-2 pr-4 whitespace-nowrap">
                    {one.passed} of {one.messages}
                  </td>
                  <RunFigures run={one} />
                  <td className="py-2">
                    <Time at={one.created} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <RunTable key={run.id} run={run} onDeleted={() => choose(undefined)} />
      </div>
    </Card>
  );
}
