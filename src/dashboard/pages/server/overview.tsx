import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Overview as Report } from "../../api/shapes.ts";
import { sizeOf } from "../../ui/files.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { DayPlots } from "./day-plots.tsx";
import { overview, serverDays } from "./queries.ts";
import { countOf, MAIL_WORDS, MESSAGE_WORDS, refusalWords, spanOf } from "./words.ts";

const number = new Intl.NumberFormat();

export function Overview() {
  const { data, error, refetch } = useQuery(overview);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the state of the server" />;
  const { today, outbound_mode, refusals } = data;
  const sent = outbound_mode === "capture" ? "Kept here" : MAIL_WORDS["sent"];
  return (
    <div className="grid gap-4">
      {data.warnings.length === 0 ? (
        <Notice look="good">
          This server warns of nothing. The check-up looks further: at the DNS, the ports and the settings.
        </Notice>
      ) : (
        data.warnings.map((warning) => (
          <Notice key={warning} look="warn">
            {warning}
          </Notice>
        ))
      )}
      <Figures report={data} />
      <DayPlots />
      <div className="grid gap-4 lg:grid-cols-3">
        <Card title="Messages today">
          <Counts rows={Object.entries(today.messages).map(([id, n]) => [MESSAGE_WORDS[id] ?? id, n])} />
        </Card>
        <Card title="Outgoing mail today">
          <Counts
            rows={Object.entries(today.mails).map(([id, n]) => [
              (id === "sent" ? sent : MAIL_WORDS[id]) ?? id,
              n,
            ])}
          />
        </Card>
        <Card title="Refused or put off, by reason">
          {refusals.length === 0 ? (
            <p className="text-soft">None since the server was started.</p>
          ) : (
            <>
              <Counts rows={refusals.map(({ reason, mails }) => [refusalWords(reason), mails])} />
              <p className="mt-2 text-sm text-soft">Since the server was started.</p>
            </>
          )}
        </Card>
      </div>
      <p className="text-sm text-soft">
        Today begins at midnight, UTC. Version {data.version}, running for {spanOf(data.uptime_seconds)}.
      </p>
    </div>
  );
}

function Figures({
  report: { waiting, today, answers, outbound_mode, memory_bytes, disk, mail_files },
}: {
  report: Report;
}) {
  const last = useQuery(serverDays).data?.at(-1);
  const { half_within_seconds: half, most_within_seconds: most } = answers;
  return (
    <dl className="grid grid-cols-2 gap-3 sm:gap-4 lg:grid-cols-4">
      <Figure words="Work that is due" value={waiting.jobs === 0 ? "None" : countOf(waiting.jobs, "job")}>
        {waiting.jobs > 0 && `the first for ${spanOf(waiting.oldest_seconds)}`}
      </Figure>
      <Figure words="Mail in today" value={number.format(today.mails_in)} />
      <Figure
        words={outbound_mode === "capture" ? "Mail kept here today" : "Mail out today"}
        value={number.format(today.mails.sent)}
      />
      <Figure words="Time to an answer" value={half === null ? "–" : spanOf(half)}>
        {most === null ? "no run since the start" : `90 % within ${spanOf(most)}`}
      </Figure>
      <Figure words="Tokens today" value={last ? number.format(last.input_tokens + last.output_tokens) : "…"}>
        {last && `${number.format(last.output_tokens)} of them written, replays and test runs aside`}
      </Figure>
      <Figure words="Memory in use" value={sizeOf(memory_bytes)} />
      <Figure words="Free on the disk" value={sizeOf(disk.free_bytes)}>
        of {sizeOf(disk.total_bytes)}; large mails and files take {sizeOf(mail_files.live_bytes)}
        {mail_files.free_bytes > 0 && `, and deleted ones still ${sizeOf(mail_files.free_bytes)}`}
      </Figure>
      <Figure words="Mail leaves" value={LEAVES[outbound_mode]} />
    </dl>
  );
}

const LEAVES = { capture: "Not at all", relay: "By a relay", direct: "Directly" };

function Figure({ words, value, children }: { words: string; value: string; children?: ReactNode }) {
  return (
    <div className="rounded-xl border border-line bg-card p-4">
      <dt className="text-sm text-soft">{words}</dt>
      <dd className="text-xl font-semibold">{value}</dd>
      {children && <dd className="text-sm text-soft">{children}</dd>}
    </div>
  );
}

function Counts({ rows }: { rows: [words: string, count: number][] }) {
  return (
    <dl className="grid gap-1">
      {rows.map(([words, count]) => (
        <div key={words} className="flex justify-between gap-3">
          <dt className="text-soft">{words}</dt>
          <dd className="tabular-nums">{number.format(count)}</dd>
        </div>
      ))}
    </dl>
  );
}
