import { useMemo } from "react";
import type { Usage } from "../../api/shapes.ts";
import { figure } from "../../ui/figure.ts";
import { Card } from "../../ui/page.tsx";
import { Plot } from "../../ui/plot.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { type Measure, useMeasures } from "./figures.ts";

const day_name = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

/** A plot of each measure over the days. */
export function DayPlots({ report }: { report: Usage }) {
  const measures = useMeasures();
  const times = useMemo(() => report.days.map(({ day }) => Date.parse(day) / 1_000), [report]);
  return (
    <div className={`grid gap-4 ${measures.length === 2 ? "lg:grid-cols-2" : "lg:grid-cols-3"}`}>
      {measures.map(({ name, of }) => (
        <Card key={name} title={`${name} by day`}>
          <p className="mb-2 text-2xl font-semibold">{figure(of(report.totals))}</p>
          <DayPlot name={name} report={report} times={times} of={of} />
        </Card>
      ))}
    </div>
  );
}

interface DayPlotProps {
  name: string;
  report: Usage;
  times: number[];
  of: Measure["of"];
}

function DayPlot({ name, report, times, of }: DayPlotProps) {
  const values = useMemo(() => report.days.map(of), [report, of]);
  return <Plot label={`${name} by day`} times={times} values={values} />;
}

/** The figures of the plots as a table. */
export function DayTable({ report }: { report: Usage }) {
  return (
    <details className="rounded-xl border border-line bg-card">
      <summary className="px-4 py-3 font-medium">Day by day, as a table</summary>
      <Scroll label="Days" className="border-t border-line p-4">
        <Table report={report} />
      </Scroll>
    </details>
  );
}

function Table({ report }: { report: Usage }) {
  const measures = useMeasures();
  return (
    <table className="w-full text-sm">
      <caption className="pb-2 text-left text-soft">Days are those of UTC. The newest is on top.</caption>
      <thead>
        <tr className="text-left text-soft">
          <th scope="col" className="py-1 font-medium">
            Day
          </th>
          {measures.map(({ name }) => (
            <th key={name} scope="col" className="py-1 text-right font-medium">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {report.days.toReversed().map((sums) => (
          <tr key={sums.day} className="border-t border-line">
            <th scope="row" className="py-1.5 text-left font-normal whitespace-nowrap">
              {day_name.format(Date.parse(sums.day))}
            </th>
            {measures.map(({ name, of }) => (
              <td key={name} className="py-1.5 pl-4 text-right tabular-nums">
                {figure(of(sums))}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
