import type { Activity } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { STATUSES } from "./words.ts";

export function StatusBadge({ status }: { status: Activity["status"] }) {
  const { look, word } = STATUSES[status];
  return <Badge look={look}>{word}</Badge>;
}
