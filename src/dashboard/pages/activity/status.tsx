import { useQuery } from "@tanstack/react-query";
import { inboxList } from "../../api/lists.ts";
import type { Activity } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { ClockTime } from "../../ui/time.tsx";
import { isLeftOut } from "./story-words.ts";
import { REPLIES, STATUSES } from "./words.ts";

type Shown = Pick<Activity, "status"> &
  Partial<Pick<Activity, "error" | "reason" | "inbox_id" | "waits_until">>;

/** `waits`: nobody works on it yet. */
export function StatusBadge({ message, waits = false }: { message: Shown; waits?: boolean }) {
  const { look, word } = STATUSES[message.status];
  const is_paused = useIsPaused(message);
  if (is_paused) return <Badge look="warn">Waits: the inbox is paused</Badge>;
  if (isLeftOut(message)) return <Badge>Left out</Badge>;
  if (waits) return <Badge look={look}>Waiting</Badge>;
  if (typeof message.waits_until !== "number") return <Badge look={look}>{word}</Badge>;
  return (
    <Badge look={look}>
      Waits until <ClockTime at={message.waits_until} />
    </Badge>
  );
}

/** What has become of another try, which is a message of its own. */
export function TriedAgainBadge({ tried_again }: Pick<Activity, "tried_again">) {
  if (tried_again === null) return null;
  return tried_again === "done" ? (
    <Badge look="good">Tried again, done</Badge>
  ) : (
    <Badge look="accent">Being tried again</Badge>
  );
}

/** Whether it waits for its inbox. No word comes when that goes on, so that the inbox is looked at too. */
export function useIsPaused({ status, reason, inbox_id }: Shown): boolean {
  const { data: inboxes } = useQuery(inboxList);
  const inbox = inboxes?.find(({ id }) => id === inbox_id);
  return status === "received" && reason === "inbox_paused" && inbox?.paused !== null;
}

/** What went wrong with the mail that answers; nothing where it went well, or where none is to be mailed. */
export function ReplyBadge({ reply_status }: Pick<Activity, "reply_status">) {
  const fault = REPLIES[reply_status];
  return fault ? <Badge look={fault.look}>{fault.word}</Badge> : null;
}
