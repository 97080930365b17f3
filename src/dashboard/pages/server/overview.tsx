import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { Overview as Report } from "../../api/shapes.ts";
import { sizeOf } from "../../ui/files.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";

const REFRESH_MS = 10_000;
const HOUR_SECONDS = 3_600;

export function Overview() {
  const { data, error, refetch } = useQuery({
    queryKey: ["admin", "overview"],
    queryFn: ({ signal }) => get<Report>("/admin/overview", signal),
    refetchInterval: REFRESH_MS,
  });
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the state of the server" />;
  return (
    <div className="grid gap-4">
      {data.warnings.length === 0 ? (
        <Notice look="good">Nothing needs your care.</Notice>
      ) : (
        data.warnings.map((warning) => (
          <Notice key={warning} look="warn">
            {warning}
          </Notice>
        ))
      )}
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-4">
        <Figure words="Version" value={data.version} />
        <Figure words="Running for" value={hoursOf(data.uptime_seconds)} />
        <Figure words="Mail leaves by" value={data.outbound_mode} />
        <Figure words="Free on the disk" value={sizeOf(data.disk.free_bytes)} />
      </div>
      <div className="grid gap-4 lg:grid-cols-2">
        <Card title="Messages today">
          <Counts counts={data.today.messages} />
        </Card>
        <Card title="Mails sent today">
          <Counts counts={data.today.mails} />
        </Card>
      </div>
      <p className="text-sm text-soft">
        For records, ports, certificates and more run <code className="font-mono">mailwright doctor</code> on
        the machine.
      </p>
    </div>
  );
}

function Figure({ words, value }: { words: string; value: string }) {
  return (
    <div className="rounded-xl border border-line bg-card p-4">
      <p className="text-sm text-soft">{words}</p>
      <p className="text-xl font-semibold">{value}</p>
    </div>
  );
}

function Counts({ counts }: { counts: Record<string, number> }) {
  return (
    <dl className="grid grid-cols-2 gap-x-4 gap-y-1 sm:grid-cols-3">
      {Object.entries(counts).map(([name, count]) => (
        <div key={name} className="flex justify-between gap-2">
          <dt className="text-soft">{name}</dt>
          <dd className="tabular-nums">{count}</dd>
        </div>
      ))}
    </dl>
  );
}

function hoursOf(seconds: number): string {
  const hours = Math.floor(seconds / HOUR_SECONDS);
  if (hours >= 48) return `${Math.floor(hours / 24)} days`;
  return hours > 0 ? `${hours} h` : `${Math.floor(seconds / 60)} min`;
}
