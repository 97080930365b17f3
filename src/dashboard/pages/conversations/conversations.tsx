import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { conversationList } from "../../api/messages.ts";
import type { Conversation } from "../../api/shapes.ts";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";

export function Conversations() {
  const list = useInfiniteQuery(conversationList);
  const { data: conversations, error, isPending, refetch } = list;
  return (
    <Page
      title="Conversations"
      intro="Mails and their answers, one thread each. Answering a mail goes on in its thread."
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your conversations" />}
      {conversations?.length === 0 && (
        <Empty title="No conversation yet">The first answered mail or call begins one.</Empty>
      )}
      {conversations && conversations.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {conversations.map((conversation) => (
            <Row key={conversation.id} conversation={conversation} />
          ))}
        </ul>
      )}
      <More of={list} />
    </Page>
  );
}

function Row({
  conversation: { id, subject, latest_sender, snippet, turn_count, last_at },
}: {
  conversation: Conversation;
}) {
  return (
    <li className="[contain-intrinsic-size:auto_4.5rem] [content-visibility:auto]">
      <Link
        to="/conversations/$conversation_id"
        params={{ conversation_id: id }}
        className="grid gap-0.5 px-4 py-3 hover:bg-hover"
      >
        <span className="flex items-baseline justify-between gap-3">
          <span className="min-w-0 truncate font-medium">{subject || "(no subject)"}</span>
          <span className="text-sm text-soft">
            <Time at={last_at} />
          </span>
        </span>
        <span className="truncate text-sm text-soft">
          {[latest_sender, turn_count > 1 ? `${turn_count} turns` : "", snippet].filter(Boolean).join(" · ")}
        </span>
      </Link>
    </li>
  );
}
