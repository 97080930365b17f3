import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { approvalList } from "../../api/lists.ts";
import type { Approval } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { callName } from "../../../trust/shown/call-name.ts";
import { STATUSES, workWords } from "./words.ts";

/** Requests come while the page is open. */
const REFRESH_MS = 10_000;

export function Approvals() {
  const approvals = useInfiniteQuery({ ...approvalList, refetchInterval: REFRESH_MS });
  const { data, error, isPending, refetch } = approvals;
  return (
    <Page
      title="Approvals"
      intro="Calls of tools that were not made, as they wait for your yes. You are mailed about each as well: the answer yes or no does the same."
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="what waits for you" />}
      {data?.length === 0 && (
        <Empty title="Nothing waits for you">
          What an instruction does not allow by itself comes here. So does each call of a tool that you mark
          on its connection, and with <code className="font-mono">--ask</code> each one that would change
          something.
        </Empty>
      )}
      {data && data.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {data.map((approval) => (
            <Row key={approval.id} approval={approval} />
          ))}
        </ul>
      )}
      {approvals.hasNextPage && <More of={approvals} />}
    </Page>
  );
}

function Row({ approval }: { approval: Approval }) {
  return (
    <li>
      <Link
        to="/approvals/$approval_id"
        params={{ approval_id: approval.id }}
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
      >
        <span className="grid min-w-0 flex-1 basis-48">
          <span className="truncate font-medium">{callName(approval)}</span>
          {approval.shown && <span className="truncate text-sm">{approval.shown}</span>}
          <span className="line-clamp-2 text-sm wrap-anywhere text-soft">{workWords(approval)}</span>
        </span>
        <span className="text-sm text-soft">
          <Time at={approval.created} />
        </span>
        <ApprovalState approval={approval} />
      </Link>
    </li>
  );
}

export function ApprovalState({ approval: { status } }: { approval: Approval }) {
  const { word, look } = STATUSES[status];
  return <Badge look={look}>{word}</Badge>;
}
