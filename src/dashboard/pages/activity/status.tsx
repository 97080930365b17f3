import type { Activity } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { STATUSES } from "./words.ts";

/** The status of a message. `waits`: its run has not begun. */
export function StatusBadge({ status, waits = false }: { status: Activity["status"]; waits?: boolean }) {
  const { look, word } = STATUSES[status];
  return <Badge look={look}>{waits ? "Waiting" : word}</Badge>;
}
