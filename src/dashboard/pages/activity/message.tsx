import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useIsBeingDeleted } from "../../api/changes.ts";
import { get, isMissing } from "../../api/client.ts";
import type { Story } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Actions } from "./actions.tsx";
import { Answer } from "./answer.tsx";
import { Asked, Material } from "./asked.tsx";
import { Continue } from "./continue.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Head } from "./head.tsx";
import { mayReplay } from "./may-replay.ts";
import { Place } from "./place.tsx";
import { Replays } from "./replays.tsx";
import { SettingLink } from "./setting-links.tsx";
import { Contexts, Done } from "./steps.tsx";
import { Sender } from "./sender.tsx";
import { errorWords } from "./story-words.ts";
import { Working } from "./working.tsx";

/** How often deliveries are asked for: the live stream does not tell of them. */
const REFRESH_MS = 5_000;
/** How soon a waiting message is asked for again: the live stream does not tell that its run has begun. */
const SOON_MS = 2_000;

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
    enabled: !useIsBeingDeleted(message_id),
    refetchInterval: ({ state: { data } }) => {
      if (data?.status === "received") return SOON_MS;
      return data?.deliveries.some(({ status }) => status === "pending") ? REFRESH_MS : false;
    },
  });
  if (isMissing(error)) return <NotFound />;
  if (error && !story)
    return (
      <Page title="Message">
        <Fault error={error} retry={() => void refetch()} />
      </Page>
    );
  if (!story) return <Loading what="the message" />;
  return (
    <Page title={titleOf(story)} actions={<Actions story={story} />}>
      <Place story={story} />
      <Head story={story} />
      <Fault error={error} retry={() => void refetch()} />
      {story.error && (
        <Notice look={story.status === "rejected" ? "warn" : "bad"}>
          <p>{errorWords(story)}</p>
          <SettingLink inbox_id={story.inbox_id} reason={story.reason} error={story.error} />
        </Notice>
      )}
      {story.status === "received" ? <Working story={story} /> : <Answer story={story} />}
      {(story.sender !== null || story.source !== "email") && <Sender story={story} />}
      {(story.status !== "received" || story.instruction !== "") && <Asked story={story} />}
      <Material story={story} />
      {story.waits_until === null && <Contexts steps={story.steps} />}
      {story.status !== "received" && <Done steps={story.steps} inbox_id={story.inbox_id} />}
      {mayReplay(story) && <Replays story={story} />}
      <Deliveries deliveries={story.deliveries} />
      {story.conversation_id && story.status !== "received" && (
        <Continue key={story.message_id} inbox_id={story.inbox_id} conversation_id={story.conversation_id} />
      )}
    </Page>
  );
}

function titleOf({ mails, subject, instruction }: Story): string {
  return mails > 1 ? `${mails} mails` : subject || instruction || "(no subject)";
}
