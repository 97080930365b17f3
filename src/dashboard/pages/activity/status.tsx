import type { Activity } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { STATUSES } from "./words.ts";

/** `waits`: nobody works on it yet. */
export function StatusBadge({ status, waits = false }: { status: Activity["status"]; waits?: boolean }) {
  const { look, word } = STATUSES[status];
  return <Badge look={look}>{waits ? "Waiting" : word}</Badge>;
}
