import type { Activity } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { isLeftOut } from "./story-words.ts";
import { REPLIES, STATUSES } from "./words.ts";

type Shown = Pick<Activity, "status"> & Partial<Pick<Activity, "error">>;

/** `waits`: nobody works on it yet. */
export function StatusBadge({ message, waits = false }: { message: Shown; waits?: boolean }) {
  const { look, word } = STATUSES[message.status];
  if (isLeftOut(message)) return <Badge>Left out</Badge>;
  return <Badge look={look}>{waits ? "Waiting" : word}</Badge>;
}

/** What went wrong with the mail that answers; nothing where it went well, or where none is to be mailed. */
export function ReplyBadge({ reply_status }: Pick<Activity, "reply_status">) {
  const fault = REPLIES[reply_status];
  return fault ? <Badge look={fault.look}>{fault.word}</Badge> : null;
}
