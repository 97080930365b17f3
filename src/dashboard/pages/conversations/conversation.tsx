import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { deletionOf, useChange, useIsBeingDeleted } from "../../api/changes.ts";
import { get, isMissing, post, remove } from "../../api/client.ts";
import type { ConversationDetail } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Button } from "../../ui/button.tsx";
import { Files } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { UNDO_MS, useToast } from "../../ui/toast.tsx";
import { Continue } from "../activity/continue.tsx";
import { StatusBadge } from "../activity/status.tsx";

/** How many of the newest turns are shown at first, and how many more at a time. */
const SHOWN_TURNS = 20;

export function Conversation() {
  const { conversation_id = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({
    queryKey: ["conversation", conversation_id],
    queryFn: ({ signal }) => get<ConversationDetail>(`/conversations/${conversation_id}`, signal),
    enabled: !useIsBeingDeleted(conversation_id),
  });
  if (isMissing(error)) return <NotFound />;
  if (error && !data)
    return (
      <Page title="Conversation">
        <Fault error={error} retry={() => void refetch()} />
      </Page>
    );
  if (!data) return <Loading what="the conversation" />;
  return (
    <Page
      title={data.subject || "(no subject)"}
      intro="The oldest turn first; the newest is at the end."
      actions={<DeleteConversation conversation_id={conversation_id} />}
    >
      <Fault error={error} retry={() => void refetch()} />
      <Turns key={conversation_id} turns={data.turns} />
      <Continue key={conversation_id} inbox_id={data.inbox_id} conversation_id={conversation_id} in_thread />
    </Page>
  );
}

/** Deletes a conversation, which can be undone for half a minute. */
function DeleteConversation({ conversation_id }: { conversation_id: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const say = useToast();
  const path = `/conversations/${conversation_id}`;
  const lists = [["conversations"], ["messages"]];
  const erase = useChange({
    run: async () => {
      // What is under way would not be found any more.
      await queries.cancelQueries({ queryKey: ["conversation", conversation_id] });
      return remove(path);
    },
    touches: [],
    key: deletionOf(conversation_id),
    done: async () => {
      await navigate({ to: "/conversations" });
      for (const queryKey of lists) void queries.resetQueries({ queryKey });
      say(
        "The conversation is deleted, with all of its messages.",
        async () => {
          await post(`${path}/restore`);
          for (const queryKey of lists) void queries.resetQueries({ queryKey });
        },
        UNDO_MS,
      );
    },
  });
  return (
    <>
      <Button icon={<Trash2 />} busy={erase.isPending} onClick={() => erase.mutate()}>
        Delete
      </Button>
      <Fault error={erase.error} />
    </>
  );
}

function Turns({ turns }: Pick<ConversationDetail, "turns">) {
  const [shown, setShown] = useState(SHOWN_TURNS);
  const earlier = Math.max(0, turns.length - shown);
  if (turns.length === 0)
    return <Empty title="Nothing of it is left">Its messages are older than what is kept for you.</Empty>;
  return (
    <>
      {earlier > 0 && (
        <div className="flex justify-center">
          <Button onClick={() => setShown(shown + SHOWN_TURNS)}>Show earlier turns ({earlier})</Button>
        </div>
      )}
      <ol className="grid gap-6">
        {turns.slice(earlier).map((turn) => (
          <Turn key={turn.message_id} turn={turn} />
        ))}
      </ol>
    </>
  );
}

function Turn({ turn }: { turn: ConversationDetail["turns"][number] }) {
  return (
    <li className="grid gap-3">
      <div className="grid gap-2 rounded-xl border border-line bg-card p-4 sm:mr-16">
        <p className="flex flex-wrap items-center justify-between gap-2 text-sm text-soft">
          <span className="wrap-anywhere">
            {turn.sender ?? "A call"} · <Time at={turn.created} />
          </span>
          <StatusBadge message={turn} />
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
