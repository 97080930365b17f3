import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Archive } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import type { Backups as Report } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { sizeOf } from "../../ui/files.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";

const KEY = ["admin", "backups"];
const PROGRESS_MS = 500;
const REFRESH_MS = 30_000;

const isUnderWay = (report: Report | undefined): boolean =>
  report?.state === "running" || report?.state === "queued";

export function Backups() {
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => get<Report>("/admin/backups", signal),
    refetchInterval: ({ state }) => (isUnderWay(state.data) ? PROGRESS_MS : REFRESH_MS),
  });
  const make = useChange<void, Report>({
    run: () => post("/admin/backups"),
    touches: [],
    done: (begun) => queries.setQueryData(KEY, begun),
  });
  useWordsAtTheEnd(data);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the backups" />;
  return (
    <div className="grid gap-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <Button
          look="main"
          icon={<Archive />}
          busy={isUnderWay(data) || make.isPending}
          onClick={() => make.mutate()}
        >
          Back up now
        </Button>
        <Now report={data} />
      </div>
      <Fault error={make.error} />
      {data.state === "failed" && (
        <Notice look="bad">
          <p>The last backup failed. {data.error}</p>
          {data.next_at && (
            <p className="text-text">
              It is tried again <Time at={data.next_at} />.
            </p>
          )}
        </Notice>
      )}
      <List report={data} />
      <Where report={data} />
    </div>
  );
}

/** Tells once that the backup which somebody waits for is made; a failure stays on the page. */
function useWordsAtTheEnd(report: Report | undefined): void {
  const say = useToast();
  const before = useRef<Report>(undefined);
  useEffect(() => {
    const newest = report?.items[0];
    if (isUnderWay(before.current) && report?.state === "idle" && newest)
      say(`The backup is made: ${sizeOf(newest.bytes)}.`);
    before.current = report;
  }, [report, say]);
}

function Now({ report: { state, bytes_written, items, next_at } }: { report: Report }): ReactNode {
  if (state === "running") {
    const last = items.find(({ before_upgrade }) => !before_upgrade)?.bytes;
    const written = bytes_written ?? 0;
    return (
      <label className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <progress
          className="h-2 w-40 accent-accent"
          {...(last ? { value: Math.min(written, last), max: last } : {})}
        />
        {sizeOf(written)} written{last !== undefined && `; the last one has ${sizeOf(last)}`}
      </label>
    );
  }
  if (state === "queued") return <span className="text-sm text-soft">About to begin…</span>;
  if (state === "held")
    return (
      <span className="text-sm text-soft">
        Backups are held. Under “Waiting work” you can let them go on.
      </span>
    );
  if (state === "idle" && next_at !== null)
    return (
      <span className="text-sm text-soft">
        The next one is made by itself <Time at={next_at} />.
      </span>
    );
  return null;
}

function List({ report: { items } }: { report: Report }) {
  if (items.length === 0)
    return (
      <Empty title="There is no backup yet">
        A backup is one file with all mail, accounts and keys. With it and your configuration file, everything
        can be brought back on a new machine.
      </Empty>
    );
  return (
    <ul className="divide-y divide-line rounded-xl border border-line bg-card">
      {items.map(({ name, bytes, created, before_upgrade }) => (
        <li key={name} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
          <span className="min-w-0 flex-1 basis-60 font-mono text-sm wrap-anywhere">{name}</span>
          {before_upgrade && <Badge>Before an upgrade, without mail</Badge>}
          <span className="text-sm text-soft tabular-nums">{sizeOf(bytes)}</span>
          <span className="text-sm text-soft">
            <Time at={created} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Where({ report: { dir, keep, schedule } }: { report: Report }) {
  return (
    <div className="grid grid-cols-1 gap-2 text-sm text-soft">
      <div className="flex flex-wrap items-center gap-2">
        They lie on the server in
        <Copyable text={dir} label="Copy the folder" />
      </div>
      <p>
        They cannot be downloaded here: each holds all mail and the keys to every stored password. Copy them
        from that folder to another machine, where nobody else can read them.
      </p>
      <p>
        {schedule === null
          ? "None is made by itself: set [backup] schedule in the configuration. "
          : "They are made by themselves. "}
        The newest {keep} are kept. To bring one back, stop the server and run{" "}
        <code className="font-mono text-text">mailwright restore FILE</code>.
      </p>
    </div>
  );
}
