import { Link, useNavigate } from "@tanstack/react-router";
import { Download, RotateCcw } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { RoutingResult, Story } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { useToast } from "../../ui/toast.tsx";
import { waitsForTry } from "./working.tsx";
import { DeleteMessage } from "./delete-message.tsx";

const PLAIN_LINK = `${BUTTON} border border-line bg-card hover:bg-hover`;

const RETRIES: Record<NonNullable<Story["may_retry"]>, { word: string; said: string }> = {
  run: { word: "Try again", said: "It is tried again. This is the new message." },
  begin: { word: "Work on it now", said: "It is worked on. This is the new message." },
  now: { word: "Do it now", said: "It has its turn now." },
  send: { word: "Send the answer again", said: "The answer is on its way again." },
};

/** The buttons of a message: to download it, to try it again where it failed, and to delete it. */
export function Actions({ story }: { story: Story }) {
  const { message_id, inbox_id, status, source, may_retry, raw_available } = story;
  const navigate = useNavigate();
  const say = useToast();
  const retry = useChange<void, RoutingResult>({
    run: () => post<RoutingResult>(`/messages/${message_id}/retry`),
    touches: [["story", message_id]],
    done: (again) => {
      if (may_retry !== null) say(RETRIES[may_retry].said);
      void navigate({ to: "/messages/$message_id", params: { message_id: again.message_id } });
    },
  });
  return (
    <>
      {raw_available && (
        <a href={`/messages/${message_id}/raw`} download className={PLAIN_LINK}>
          <Download aria-hidden />
          <span>
            The mail<span className="max-sm:sr-only"> as it came</span> (.eml)
          </span>
        </a>
      )}
      {may_retry !== null && (
        <Button icon={<RotateCcw />} busy={retry.isPending} onClick={() => retry.mutate()}>
          {waitsForTry(story) ? "Try now" : RETRIES[may_retry].word}
        </Button>
      )}
      {status === "failed" && source === "test" && inbox_id !== null && (
        <Link to="/inboxes/$inbox_id" params={{ inbox_id }} className={PLAIN_LINK}>
          <RotateCcw aria-hidden /> Test the inbox again
        </Link>
      )}
      {status !== "received" && <DeleteMessage message_id={message_id} />}
      <Fault error={retry.error} />
    </>
  );
}
