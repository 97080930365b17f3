import { CircleStop } from "lucide-react";
import { useEffect, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { RoutingResult, Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Card } from "../../ui/page.tsx";
import { Spinner } from "../../ui/spinner.tsx";
import { useToast } from "../../ui/toast.tsx";
import { SettingLink } from "./setting-links.tsx";
import { useIsPaused } from "./status.tsx";
import { Steps } from "./steps.tsx";

/** A message that has not ended: since when, what was done so far, and the button to cancel it. */
export function Working({ story }: { story: Story }) {
  const is_paused = useIsPaused(story);
  if (story.waits_until !== null) return <WaitingByRule story={story} />;
  return (
    <Card
      title={
        story.running
          ? "It is being worked on"
          : waitsForTry(story)
            ? "It waits for its next try"
            : "It has not begun"
      }
      actions={<Cancel message_id={story.message_id} is_told={isTold(story)} />}
    >
      <div className="grid gap-3">
        <p className="flex items-center gap-2 text-soft">
          {story.running && <Spinner />}
          <span>
            {story.running ? "The answer shows here by itself." : whyItWaits(story, is_paused)}{" "}
            <SoFar since={story.created} />
          </span>
        </p>
        {is_paused && <SettingLink inbox_id={story.inbox_id} reason={story.reason} />}
        {story.steps.length > 0 && <Steps steps={story.steps} />}
      </div>
    </Card>
  );
}

/** A message that waits for a time: its step says which rule has it wait, and until when. */
function WaitingByRule({ story }: { story: Story }) {
  const words = story.steps.findLast(({ name }) => name === "rule")?.output;
  return (
    <Card title="It has not begun" actions={<Cancel message_id={story.message_id} is_told={isTold(story)} />}>
      <p className="text-soft">{words ?? "A rule of its inbox has it wait."}</p>
    </Card>
  );
}

/** Whether its model has failed for the moment, and is asked again at a time that its step names. */
export function waitsForTry({ status, may_retry, waits_until }: Story): boolean {
  return status === "received" && may_retry === "now" && waits_until === null;
}

function whyItWaits(story: Story, is_paused: boolean): string {
  if (is_paused) return "It waits: its inbox is paused.";
  if (story.held) return "It waits: the administrator holds all work.";
  return waitsForTry(story) ? "It was tried, and waits for its next try." : "It waits for its turn.";
}

/** How long something has been going on. */
export function SoFar({ since }: { since: number }) {
  const seconds = useSecondsSince(since);
  // Every second is news to the eye alone, even where what surrounds it is read out.
  return (
    <span role="timer" aria-live="off" className="whitespace-nowrap tabular-nums">
      {spanOf(seconds)} so far.
    </span>
  );
}

/** Whether the sender is told of a cancellation: the owner knows, and strangers are told of no failure. */
function isTold({ source, authority }: Story): boolean {
  return source === "email" && authority === "listed";
}

/** The button that cancels a message, once that was confirmed. */
export function Cancel({ message_id, is_told = false }: { message_id: string; is_told?: boolean }) {
  const say = useToast();
  const [asked, setAsked] = useState(false);
  const cancel = useChange<void, RoutingResult>({
    run: () => post<RoutingResult>(`/messages/${message_id}/cancel`),
    touches: [["story", message_id], ["routing", message_id], ["messages"]],
    done: () => say("It is cancelled, and costs nothing."),
  });
  return (
    <>
      <Button icon={<CircleStop />} onClick={() => setAsked(true)}>
        Cancel
      </Button>
      {asked && (
        <Confirm
          title="Cancel this message?"
          act="Cancel it"
          cancel="Let it go on"
          busy={cancel.isPending}
          error={cancel.error}
          onConfirm={() => cancel.mutate()}
          onClose={() => setAsked(false)}
        >
          <p>It ends as failed at once, costs nothing, and can be tried again.</p>
          <p>
            What a tool is doing right now may still be done there.
            {is_told && " Its sender is told by mail."}
          </p>
        </Confirm>
      )}
    </>
  );
}

function useSecondsSince(at: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, Math.floor(now / 1_000) - at);
}

function spanOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
