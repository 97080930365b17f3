import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ArrowLeft } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import { approvalList } from "../../api/lists.ts";
import type { Approval as ApprovalView } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { ApprovalState } from "./approvals.tsx";
import { callName, shortTarget } from "../../../trust/shown/call-name.ts";
import { causeWords, workWords } from "./words.ts";

/** A call is over in seconds, mostly. */
const REFRESH_MS = 3_000;

const keyOf = (id: string) => ["approval", id];

/** Shows one request. Opening it does nothing, as programs open links too: only its buttons do. */
export function Approval() {
  const { approval_id = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({
    queryKey: keyOf(approval_id),
    queryFn: ({ signal }) => get<ApprovalView>(`/v1/approvals/${approval_id}`, signal),
    refetchInterval: REFRESH_MS,
  });
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  return data ? <ApprovalPage approval={data} /> : <Loading what="the request" />;
}

function ApprovalPage({ approval }: { approval: ApprovalView }) {
  const { status, outcome, changes, message_id, run_id, decided_at, sender } = approval;
  return (
    <Page title={callName(approval)}>
      <Link to="/approvals" className={`${BUTTON} -ml-3 justify-self-start text-soft hover:bg-hover`}>
        <ArrowLeft aria-hidden /> Back to the approvals
      </Link>
      <Card>
        <div className="grid gap-4">
          <div className="flex flex-wrap items-center gap-3">
            <p className="min-w-0 flex-1 basis-48 font-medium wrap-anywhere">{workWords(approval)}</p>
            <ApprovalState approval={approval} />
          </div>
          {/* Nothing of it scrolls out of sight. */}
          <pre
            aria-label="What would be called with"
            className="rounded-lg bg-hover p-3 font-mono text-sm wrap-anywhere whitespace-pre-wrap"
          >
            {approval.shown === null ? "It cannot be read any more." : approval.shown || "⟨no arguments⟩"}
          </pre>
          {changes !== null && <Changes target={shortTarget(approval)} changes={changes} />}
          <p className="text-sm text-soft">{causeWords(approval)}</p>
          {decided_at !== null && (
            <p className="text-sm">
              {status === "refused" ? "You refused it" : "You allowed it"} <Time at={decided_at} />.
            </p>
          )}
          {status === "pending" && <Decision approval={approval} />}
          {status === "expired" && (
            <Notice look="info">
              It was not allowed within seven days, and was not done. Ask for it again if you still want it.
            </Notice>
          )}
          {status === "unknown" && (
            <Notice look="warn">
              The call was begun, and no answer came: it may or may not have been done. Look there.
            </Notice>
          )}
          {outcome !== null && (
            <div className="grid gap-1 text-sm">
              <p className="text-soft">The tool answered</p>
              <pre className="rounded-lg bg-hover p-3 font-mono wrap-anywhere whitespace-pre-wrap">
                {outcome}
              </pre>
            </div>
          )}
          <p className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-soft">
            <Link to="/messages/$message_id" params={{ message_id }} className="underline">
              {sender === null ? "The call that wanted it" : "The mail that wanted it"}
            </Link>
            {run_id !== null && (
              <Link to="/messages/$message_id" params={{ message_id: run_id }} className="underline">
                The answer with what came of it
              </Link>
            )}
          </p>
        </div>
      </Card>
    </Page>
  );
}

/** The old values are words of others: they are shown as they came, with every hidden character written out. */
function Changes({ target, changes }: { target: string; changes: string }) {
  return (
    <div className="grid gap-1 text-sm">
      <p className="text-soft">
        What it would change of what @{target} answered earlier in this work. It may be otherwise there by
        now; the old values are words of others.
      </p>
      <pre
        aria-label="What would change"
        className="rounded-lg bg-hover p-3 font-mono wrap-anywhere whitespace-pre-wrap"
      >
        {changes}
      </pre>
    </div>
  );
}

function Decision({ approval: { id, hash, expires_at, shown } }: { approval: ApprovalView }) {
  const say = useToast();
  const touches = [keyOf(id), approvalList.queryKey];
  const path = `/v1/approvals/${id}`;
  const approve = useChange({
    run: () => post(`${path}/approve`, { hash }),
    touches,
    done: () => say("It is being done."),
  });
  const refuse = useChange({
    run: () => post(`${path}/refuse`),
    touches,
    done: () => say("It is not done."),
  });
  return (
    <div className="grid gap-3">
      <Fault error={approve.error ?? refuse.error} />
      <div className="flex flex-wrap gap-3">
        <Button
          look="main"
          busy={approve.isPending}
          disabled={shown === null || refuse.isPending}
          onClick={() => approve.mutate()}
        >
          Do exactly this, once
        </Button>
        <Button busy={refuse.isPending} disabled={approve.isPending} onClick={() => refuse.mutate()}>
          Do not
        </Button>
      </div>
      <p className="text-sm text-soft">
        Nothing has been done. The request ends <Time at={expires_at} />.
      </p>
    </div>
  );
}
