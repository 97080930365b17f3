import type { Activity } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";

const LOOKS: Record<Activity["status"], { look: BadgeLook; word: string }> = {
  received: { look: "accent", word: "Working" },
  done: { look: "good", word: "Done" },
  failed: { look: "bad", word: "Failed" },
  rejected: { look: "warn", word: "Not taken" },
  limited: { look: "warn", word: "No credits" },
};

export function StatusBadge({ status }: { status: Activity["status"] }) {
  const { look, word } = LOOKS[status];
  return <Badge look={look}>{word}</Badge>;
}

export const STATUS_WORDS = Object.entries(LOOKS).map(([status, { word }]) => ({ status, word }));
