import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Download, RotateCcw } from "lucide-react";
import type { ReactNode } from "react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import type { RoutingResult, Story } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Files } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { Sender } from "./sender.tsx";
import { StatusBadge } from "./status.tsx";
import { Steps } from "./steps.tsx";

/** One message from its arrival to its answer. */
export function Message() {
  const { message_id = "" } = useParams({ strict: false });
  const {
    data: story,
    error,
    refetch,
  } = useQuery({
    queryKey: ["story", message_id],
    queryFn: ({ signal }) => get<Story>(`/messages/${message_id}`, signal),
  });
  if (error)
    return (
      <Page title="Message">
        <Fault error={error} retry={() => void refetch()} />
      </Page>
    );
  if (!story) return <Loading what="the message" />;
  return (
    <Page title={story.subject || story.instruction || "(no subject)"} actions={<Actions story={story} />}>
      <Head story={story} />
      {story.error && <Notice look="bad">{story.error}</Notice>}
      <Sender story={story} />
      <Card title="What was asked">
        {story.instruction ? (
          <p className="whitespace-pre-wrap wrap-anywhere">{story.instruction}</p>
        ) : (
          <p className="text-soft">Nothing here counted as an instruction.</p>
        )}
      </Card>
      <Material story={story} />
      {story.steps.length > 0 && (
        <Card title="What was done">
          <Steps steps={story.steps} />
        </Card>
      )}
      <Card title="The answer">
        <div className="grid gap-3">
          {story.result ? <ModelText text={story.result} /> : <p className="text-soft">There is none.</p>}
          <Files files={story.attachments.filter(({ direction }) => direction === "out")} />
          <ReplyLine story={story} />
        </div>
      </Card>
      <Deliveries story={story} />
    </Page>
  );
}

function Head({ story }: { story: Story }) {
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
      <StatusBadge status={story.status} />
      <Time at={story.created} />
      {story.duration_ms !== null && <span>took {(story.duration_ms / 1_000).toFixed(1)} s</span>}
      {story.model && <span>{story.model}</span>}
      {story.usage && <span>{story.usage.input_tokens + story.usage.output_tokens} tokens</span>}
      <span>{story.credits_charged === 1 ? "1 credit" : `${story.credits_charged} credits`}</span>
      {story.duplicates > 0 && <span>came {story.duplicates + 1} times</span>}
      {story.tags.map((tag) => (
        <Badge key={tag}>{tag}</Badge>
      ))}
      {story.conversation_id && (
        <Link
          to="/conversations/$conversation_id"
          params={{ conversation_id: story.conversation_id }}
          className="text-accent underline"
        >
          The conversation
        </Link>
      )}
    </p>
  );
}

function Actions({ story }: { story: Story }) {
  const navigate = useNavigate();
  const retry = useChange<void, RoutingResult>({
    run: () => post<RoutingResult>(`/messages/${story.message_id}/retry`),
    touches: [["messages"], ["story"]],
    done: ({ message_id }) => void navigate({ to: "/messages/$message_id", params: { message_id } }),
  });
  return (
    <>
      {story.raw_available && (
        <a
          href={`/messages/${story.message_id}/raw`}
          download
          className={`${BUTTON} border border-line bg-card hover:bg-hover`}
        >
          <Download aria-hidden /> The mail as it came
        </a>
      )}
      {story.status === "failed" && (
        <Button icon={<RotateCcw />} busy={retry.isPending} onClick={() => retry.mutate()}>
          Try again
        </Button>
      )}
      <Fault error={retry.error} />
    </>
  );
}

function Material({ story }: { story: Story }) {
  const files = story.attachments.filter(({ direction }) => direction === "in");
  if (story.content === null && files.length === 0) return null;
  return (
    <Card title="What was read, and never obeyed">
      <div className="grid gap-3">
        {story.content === null ? (
          <p className="text-soft">The text is no longer kept.</p>
        ) : (
          <pre className="max-h-96 overflow-auto rounded-md bg-back p-3 font-sans text-sm whitespace-pre-wrap wrap-anywhere">
            {story.content}
          </pre>
        )}
        {story.content_truncated && <p className="text-sm text-soft">There is more of it.</p>}
        <Files files={files} />
      </div>
    </Card>
  );
}

const REPLY_WORDS: Record<string, string> = {
  none: "No mail was sent.",
  queued: "The answer is about to be mailed.",
  sent: "The answer was mailed.",
  deferred: "The other server asked to try again later.",
  bounced: "The answer could not be delivered.",
  suppressed: "No answer was sent, because this address no longer works.",
};

const KEPT_HERE = "The answer is kept here: this server mails nothing to anybody.";

function ReplyLine({ story: { reply, reply_status, reply_error } }: { story: Story }): ReactNode {
  return (
    <div className="border-t border-line pt-3 text-sm text-soft">
      <p>
        {reply?.kept_here ? KEPT_HERE : (REPLY_WORDS[reply_status] ?? reply_status)}
        {reply && ` To ${reply.to}.`}
        {reply?.completed && (
          <>
            {" "}
            <Time at={reply.completed} />
          </>
        )}
      </p>
      {(reply_error ?? reply?.response) && <p className="wrap-anywhere">{reply_error ?? reply?.response}</p>}
    </div>
  );
}

const LOOKS: Record<string, BadgeLook> = { delivered: "good", pending: "accent", failed: "bad" };

function Deliveries({ story: { deliveries } }: { story: Story }) {
  if (deliveries.length === 0) return null;
  return (
    <Card title="Who was told (webhooks)">
      <ul className="divide-y divide-line">
        {deliveries.map(({ id, endpoint_id, url, status, response_status, error, created }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm">
            <Badge look={LOOKS[status] ?? "plain"}>{status}</Badge>
            <Link
              to="/webhooks/$endpoint_id"
              params={{ endpoint_id }}
              className="min-w-0 flex-1 truncate font-mono text-accent underline"
            >
              {url}
            </Link>
            <span className="text-soft">{response_status ?? error}</span>
            <Time at={created} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
