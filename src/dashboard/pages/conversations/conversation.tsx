import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { get } from "../../api/client.ts";
import type { ConversationDetail } from "../../api/shapes.ts";
import { Files } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { StatusBadge } from "../activity/status.tsx";

export function Conversation() {
  const { conversation_id = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({
    queryKey: ["conversations", conversation_id],
    queryFn: ({ signal }) => get<ConversationDetail>(`/conversations/${conversation_id}`, signal),
  });
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the conversation" />;
  return (
    <Page title={data.subject || "(no subject)"}>
      <ol className="grid gap-6">
        {data.turns.map((turn) => (
          <Turn key={turn.message_id} turn={turn} />
        ))}
      </ol>
    </Page>
  );
}

function Turn({ turn }: { turn: ConversationDetail["turns"][number] }) {
  return (
    <li className="grid gap-3">
      <div className="grid gap-2 rounded-xl border border-line bg-card p-4 sm:mr-16">
        <p className="flex flex-wrap items-center justify-between gap-2 text-sm text-soft">
          <span>
            {turn.sender ?? "A call"} · <Time at={turn.created} />
          </span>
          <StatusBadge status={turn.status} />
        </p>
        <p className="whitespace-pre-wrap wrap-anywhere">
          {turn.instruction || <em className="text-soft">No instruction: its words are content only.</em>}
        </p>
        <Link
          to="/messages/$message_id"
          params={{ message_id: turn.message_id }}
          className="text-sm text-accent underline"
        >
          How this came about
        </Link>
      </div>
      {(turn.reply || turn.error) && (
        <div className="grid gap-3 rounded-xl border border-line bg-accent-soft p-4 sm:ml-16">
          {turn.error && <Notice look="bad">{turn.error}</Notice>}
          {turn.reply && <ModelText text={turn.reply} />}
          <Files files={turn.attachments} />
        </div>
      )}
    </li>
  );
}
