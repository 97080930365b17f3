import type { Story } from "../../api/shapes.ts";
import { Files } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Card } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { SettingLink } from "./setting-links.tsx";
import { HELD_HERE, KEPT_HERE } from "./words.ts";

/** The result of a message, the files that were made, and what became of its answer. */
export function Answer({ story }: { story: Story }) {
  const { result, attachments } = story;
  return (
    <Card title="The answer">
      <div className="grid gap-3">
        {result ? <ModelText text={result} /> : <p className="text-soft">There is none.</p>}
        <Files files={attachments.filter(({ direction }) => direction === "out")} />
        {story.source === "email" && <Reply story={story} />}
      </div>
    </Card>
  );
}

const DELAYED = "was handed over; the other server goes on trying.";
const WORDS: Record<string, string> = {
  none: "No mail was sent.",
  queued: "is about to be mailed.",
  sent: "was mailed.",
  deferred: "waits: the other server asked to try again later.",
  bounced: "could not be delivered.",
  suppressed: "was held back.",
};

/** The words for an answer that is on its way: what has been handed over waits at another server, not here. */
function replyWords(status: string, reply: Story["reply"]): string {
  if (reply?.kept_here) return KEPT_HERE;
  if (reply?.held) return HELD_HERE;
  if (status === "deferred" && reply?.completed) return DELAYED;
  return WORDS[status] ?? status;
}

/** What became of the answer; also of a failed message, whose sender may be told of the failure. */
function Reply({ story }: { story: Story }) {
  const { status, reply, reply_status, reply_error } = story;
  const details = reply?.kept_here ? null : (reply_error ?? reply?.response);
  const words = replyWords(reply_status, reply);
  const what = status === "done" ? "The answer" : "A mail that says so";
  return (
    <div className="border-t border-line pt-3 text-sm text-soft">
      <p>
        {reply_status === "none" ? words : `${what} ${words}`}
        {reply && ` It is for ${reply.to}.`}
        {reply && reply.attempts > 1 && ` It was tried ${reply.attempts} times.`}{" "}
        {reply?.completed && <Time at={reply.completed} />}
      </p>
      {details && <p className="wrap-anywhere">{details}</p>}
      {reply_status === "none" && reply_error && (
        <SettingLink inbox_id={story.inbox_id} reason={story.no_reply_reason ?? "reply_disabled"} />
      )}
    </div>
  );
}
