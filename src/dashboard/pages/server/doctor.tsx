import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Stethoscope } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import { serverFacts } from "../../api/session.ts";
import type { Examination } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { countOf } from "./words.ts";

const KEY = ["admin", "doctor"];
const PROGRESS_MS = 500;

type Finding = Examination["findings"][number];

const VERDICTS: Record<Finding["verdict"], { look: BadgeLook; word: string }> = {
  fail: { look: "bad", word: "Broken" },
  warn: { look: "warn", word: "Look at it" },
  ok: { look: "good", word: "Fine" },
  skip: { look: "plain", word: "Not looked at" },
};

/** Has the server look at itself, and says how to mend what is wrong. */
export function Doctor() {
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => get<Examination>("/admin/doctor", signal),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? PROGRESS_MS : false),
  });
  const look = useChange<void, Examination>({
    run: () => post("/admin/doctor"),
    touches: [],
    done: (begun) => queries.setQueryData(KEY, begun),
  });
  const running = data?.state === "running";
  const button = (
    <Button look="main" icon={<Stethoscope />} busy={running || look.isPending} onClick={() => look.mutate()}>
      {running ? "Looking…" : data?.state === "done" ? "Look again" : "Look now"}
    </Button>
  );
  const { data: server } = useQuery(serverFacts);
  const trying = server?.outbound_mode === "capture" && (
    <Notice>
      This server mails nothing to anybody, as for trying it out. For that, DNS, ports and certificates are
      not needed: what is said of them below counts once it is to go live.
    </Notice>
  );
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the last check-up" />;
  if (data.state === "never")
    return (
      <>
        <Fault error={look.error} />
        <Empty title="No check-up since the server was started" action={button}>
          It looks at the DNS, the ports, certificates, the disk, the model and more, and says how to mend
          what is wrong. It changes nothing and takes up to half a minute.
        </Empty>
      </>
    );
  return (
    <div className="grid gap-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        {button}
        {running ? <Progress report={data} /> : data.ended && <Ended at={data.ended} />}
      </div>
      <Fault error={look.error} />
      {trying}
      {data.findings.length > 0 && <Findings findings={data.findings} />}
    </div>
  );
}

function Progress({ report: { ended_checks, checks } }: { report: Examination }) {
  return (
    <label className="flex flex-wrap items-center gap-2 text-sm text-soft">
      <progress className="h-2 w-40 accent-accent" value={ended_checks} max={checks || 1} />
      {ended_checks} of {checks} checks
    </label>
  );
}

function Ended({ at }: { at: number }) {
  return (
    <span className="text-sm text-soft">
      Looked <Time at={at} />
    </span>
  );
}

/** The findings: first those that somebody has to look at, the rest below. */
function Findings({ findings }: { findings: Finding[] }) {
  const those = (verdict: Finding["verdict"]): Finding[] =>
    findings.filter((finding) => finding.verdict === verdict);
  const [failed, warned, fine, skipped] = [those("fail"), those("warn"), those("ok"), those("skip")];
  const calm = `${countOf(fine.length, "check is", "checks are")} fine, ${skipped.length} did not apply`;
  return (
    <>
      {failed.length > 0 ? (
        <Notice look="bad">
          {countOf(failed.length, "thing is broken", "things are broken")}
          {warned.length > 0 && `, and ${countOf(warned.length, "more wants", "more want")} a look`}.
        </Notice>
      ) : warned.length > 0 ? (
        <Notice look="warn">
          Nothing is broken. {countOf(warned.length, "thing wants", "things want")} a look.
        </Notice>
      ) : (
        <Notice look="good">Everything is fine.</Notice>
      )}
      {failed.length + warned.length > 0 && (
        <div className="rounded-xl border border-line bg-card">
          <List findings={[...failed, ...warned]} />
        </div>
      )}
      <details className="rounded-xl border border-line bg-card">
        <summary className="px-4 py-3 font-medium">{calm}</summary>
        <div className="border-t border-line">
          <List findings={[...fine, ...skipped]} />
        </div>
      </details>
    </>
  );
}

function List({ findings }: { findings: Finding[] }) {
  return (
    <ul className="divide-y divide-line">
      {findings.map(({ name, verdict, found, mend }) => (
        <li key={`${name} ${found}`} className="grid gap-1 px-4 py-3">
          <div className="flex flex-wrap items-center justify-between gap-2">
            <h3 className="font-medium first-letter:uppercase">{name}</h3>
            <Badge look={VERDICTS[verdict].look}>{VERDICTS[verdict].word}</Badge>
          </div>
          <p className="wrap-anywhere">{found}</p>
          {mend && <p className="text-sm text-soft wrap-anywhere">What to do: {mend}</p>}
        </li>
      ))}
    </ul>
  );
}
