import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, queryOf } from "../../api/client.ts";
import { useMe, useSold } from "../../api/session.ts";
import type { Usage as Report } from "../../api/shapes.ts";
import { Select } from "../../ui/field.tsx";
import { figure } from "../../ui/figure.ts";
import { Fault } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { SOURCES } from "../activity/words.ts";
import { MonthCosts } from "./costs.tsx";
import { DayPlots, DayTable } from "./days.tsx";
import { Bar, Shares } from "./shares.tsx";
import { DAY_SECONDS } from "../../../lib/durations.ts";

const BYTES_OF_MB = 1_048_576;
const SPANS = [7, 30, 90, 365];

/** The page about what ran, what it used, and what is left. */
export function Usage() {
  const [days, setDays] = useState(30);
  const { data, error, refetch } = useQuery({
    queryKey: ["usage", days],
    queryFn: ({ signal }) => get<Report>(`/usage?${queryOf({ since: sinceOf(days) })}`, signal),
    placeholderData: keepPreviousData,
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
      {data && <MonthCosts costs={data.costs} />}
      {data && <Storage storage={data.storage} />}
      <Fault error={error} retry={() => void refetch()} />
      {data ? <Sums report={data} /> : !error && <Loading what="your usage" />}
    </Page>
  );
}

/** The beginning of the range: whole days, as the server counts them. */
function sinceOf(days: number): number {
  const today = Math.floor(Date.now() / 1_000 / DAY_SECONDS);
  return (today - days + 1) * DAY_SECONDS;
}

function Credits() {
  const { credits } = useMe();
  if (credits.unlimited) return null;
  const share = credits.allowance === 0 ? 1 : Math.min(1, credits.used / credits.allowance);
  return (
    <Card title="Credits">
      <div className="grid gap-2">
        <p className="text-2xl font-semibold">
          {figure(credits.remaining)} <span className="text-base font-normal text-soft">left</span>
        </p>
        <Bar share={share} />
        <p className="text-sm text-soft">
          {figure(credits.used)} of the {figure(credits.allowance)} of this month are used
          {credits.topup > 0 && `, and ${figure(credits.topup)} that you bought are left`}. New ones come{" "}
          <Time at={credits.resets_at} />.
        </p>
      </div>
    </Card>
  );
}

function Storage({ storage: { bytes, limit_bytes } }: Pick<Report, "storage">) {
  const sold = useSold();
  const isFull = limit_bytes !== null && bytes >= limit_bytes;
  return (
    <Card title="Storage">
      <div className="grid gap-2">
        <p className="text-2xl font-semibold">
          {megabytes(bytes)} <span className="text-base font-normal text-soft">stored</span>
        </p>
        {limit_bytes !== null && <Bar share={Math.min(1, bytes / limit_bytes)} />}
        <p className="text-sm text-soft">
          {limit_bytes === null
            ? "Mails, files, messages and contexts, without a limit."
            : `Of the ${megabytes(limit_bytes)} ${sold ? "of your plan" : "that you may store"}, with mails, files, messages and contexts.`}
          {isFull &&
            " There is no room for more: mail is put off and calls are refused until your inboxes keep less."}
        </p>
      </div>
    </Card>
  );
}

/** "3.2 MB", "1,000 MB". */
function megabytes(bytes: number): string {
  const value = Math.ceil((bytes * 10) / BYTES_OF_MB) / 10;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 1 : 0 })} MB`;
}

function Sums({ report }: { report: Report }) {
  if (report.totals.runs === 0)
    return (
      <Empty title="Nothing was answered in this time">
        What your inboxes answer is counted here, by day, by inbox and by where it came from.
      </Empty>
    );
  return (
    <>
      <DayPlots report={report} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Shares
          title="By inbox"
          rows={report.inboxes.map(({ inbox_id, label, ...sums }) => ({
            ...sums,
            key: inbox_id ?? "",
            name: inbox_id === null ? "Deleted inboxes" : label || "Without a name",
          }))}
        />
        <Shares
          title="By where it came from"
          rows={report.sources.map(({ source, ...sums }) => ({
            ...sums,
            key: source,
            name: source === "replay" ? "Replays" : `${SOURCES[source].word}s`,
          }))}
        />
      </div>
      <DayTable report={report} />
    </>
  );
}
