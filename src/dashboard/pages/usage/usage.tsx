import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, queryOf } from "../../api/client.ts";
import type { Usage as Report } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Plot } from "../../ui/plot.tsx";
import { Select } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";

const DAY_SECONDS = 86_400;
const SPANS = [7, 30, 90];
const SOURCES: Record<string, string> = { email: "Mails", api: "Calls", test: "Tests" };
const number = new Intl.NumberFormat();

export function Usage() {
  const [days, setDays] = useState(30);
  const { data, error, refetch } = useQuery({
    queryKey: ["usage", days],
    queryFn: ({ signal }) =>
      get<Report>(
        `/usage?${queryOf({ since: Math.floor(Date.now() / 1_000) - days * DAY_SECONDS })}`,
        signal,
      ),
  });
  return (
    <Page
      title="Usage"
      intro="What your inboxes did, and what it cost."
      actions={
        <Select
          aria-label="Time"
          className="w-auto!"
          value={days}
          onChange={(event) => setDays(Number(event.target.value))}
        >
          {SPANS.map((span) => (
            <option key={span} value={span}>
              Last {span} days
            </option>
          ))}
        </Select>
      }
    >
      <Credits />
      <Fault error={error} retry={() => void refetch()} />
      {data ? <Tables report={data} /> : !error && <Loading what="your usage" />}
    </Page>
  );
}

function Credits() {
  const { credits } = useMe();
  const share = credits.allowance === 0 ? 1 : Math.min(1, credits.used / credits.allowance);
  return (
    <Card title="Credits">
      <div className="grid gap-2">
        <p className="text-2xl font-semibold">
          {number.format(credits.remaining)} <span className="text-base font-normal text-soft">left</span>
        </p>
        <meter
          aria-label="Credits of this period that are used"
          className="h-2 w-full"
          min={0}
          max={1}
          high={0.9}
          value={share}
        />
        <p className="text-sm text-soft">
          {number.format(credits.used)} of {number.format(credits.allowance)} of this period are used
          {credits.topup > 0 && `, and ${number.format(credits.topup)} that you bought are left`}. New ones
          come <Time at={credits.resets_at} />.
        </p>
      </div>
    </Card>
  );
}

function Tables({ report }: { report: Report }) {
  const days = report.days.map(({ day }) => Date.parse(day) / 1_000);
  return (
    <>
      <Card title="Answered, by day">
        <Plot label="Runs by day" times={days} values={report.days.map(({ runs }) => runs)} />
      </Card>
      <Card title="Tokens, by day">
        <Plot
          label="Tokens by day"
          times={days}
          values={report.days.map(({ input_tokens, output_tokens }) => input_tokens + output_tokens)}
        />
      </Card>
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="By inbox">
          <Sums rows={report.inboxes.map((row) => ({ ...row, name: row.label ?? "Deleted inboxes" }))} />
        </Card>
        <Card title="By source">
          <Sums rows={report.sources.map((row) => ({ ...row, name: SOURCES[row.source] ?? row.source }))} />
        </Card>
      </div>
    </>
  );
}

type Row = Report["totals"] & { name: string };

function Sums({ rows }: { rows: Row[] }) {
  if (rows.length === 0) return <p className="text-soft">Nothing in this time.</p>;
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead>
          <tr className="text-left text-soft">
            <th className="py-1 font-medium">Name</th>
            <th className="py-1 text-right font-medium">Answered</th>
            <th className="py-1 text-right font-medium">Credits</th>
            <th className="py-1 text-right font-medium">Tokens</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, runs, credits, input_tokens, output_tokens }) => (
            <tr key={name} className="border-t border-line">
              <td className="max-w-48 truncate py-1.5">{name}</td>
              <td className="py-1.5 text-right tabular-nums">{number.format(runs)}</td>
              <td className="py-1.5 text-right tabular-nums">{number.format(credits)}</td>
              <td className="py-1.5 text-right tabular-nums">
                {number.format(input_tokens + output_tokens)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
