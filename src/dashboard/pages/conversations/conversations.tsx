import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { conversationList } from "../../api/messages.ts";
import type { Conversation } from "../../api/shapes.ts";
import { Growing, Live } from "../../ui/growing.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { ReplyBadge, StatusBadge } from "../activity/status.tsx";

export function Conversations() {
  return (
    <Page
      title="Conversations"
      intro="Mails and their answers, one thread each. Answering a mail goes on in its thread."
      actions={<Live />}
    >
      <Growing
        list={conversationList}
        label="Conversations"
        wordsFor={(count) => (count === 1 ? "1 new answer" : `${count} new answers`)}
        empty={<Empty title="No conversation yet">The first answered mail or call begins one.</Empty>}
        keyOf={idOf}
        row={rowOf}
        className="[--row:4.5rem]"
      />
    </Page>
  );
}

const idOf = ({ id }: Conversation): string => id;
const rowOf = (conversation: Conversation) => <Row conversation={conversation} />;

const Row = memo(function Row({
  conversation: {
    id,
    subject,
    latest_sender,
    snippet,
    turn_count,
    last_at,
    latest_status,
    latest_reply_status,
  },
}: {
  conversation: Conversation;
}) {
  return (
    <Link
      to="/conversations/$conversation_id"
      params={{ conversation_id: id }}
      className="grid h-full content-center gap-0.5 px-4 -outline-offset-2 hover:bg-hover"
    >
      <span className="flex items-baseline justify-between gap-3">
        <span className="min-w-0 truncate font-medium">{subject || "(no subject)"}</span>
        <span className="text-sm text-soft">
          <Time at={last_at} />
        </span>
      </span>
      <span className="flex min-w-0 items-center gap-2 text-sm text-soft">
        {latest_status && latest_status !== "done" && <StatusBadge message={{ status: latest_status }} />}
        {latest_reply_status && <ReplyBadge reply_status={latest_reply_status} />}
        <span className="truncate">
          {[latest_sender, turn_count > 1 ? `${turn_count} turns` : "", snippet].filter(Boolean).join(" · ")}
        </span>
      </span>
    </Link>
  );
});
