import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Plot } from "../../ui/plot.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { serverDays } from "./queries.ts";

/** Plots of the last 30 days of the whole server. */
export function DayPlots() {
  const { data, error, refetch } = useQuery(serverDays);
  const series = useMemo(
    () =>
      data && {
        times: data.map(({ day }) => Date.parse(day) / 1_000),
        messages: data.map(({ messages }) => messages),
        tokens: data.map(({ input_tokens, output_tokens }) => input_tokens + output_tokens),
      },
    [data],
  );
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!series) return <Loading what="the last 30 days" />;
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Card title="Messages, by day">
        <Plot label="Messages in the last 30 days" times={series.times} values={series.messages} />
      </Card>
      <Card title="Tokens, by day">
        <Plot label="Tokens in the last 30 days" times={series.times} values={series.tokens} />
      </Card>
    </div>
  );
}
