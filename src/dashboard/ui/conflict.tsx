import type { ReactNode } from "react";
import { ApiError } from "../api/client.ts";
import { Button } from "./button.tsx";

interface ConflictProps {
  error: unknown;
  busy: boolean;
  onKeep: () => void;
  /** What comes of keeping one's own. */
  children: ReactNode;
}

/** What to do where another tab, or somebody else, has saved something else since this was read. */
export function Conflict({ error, busy, onKeep, children }: ConflictProps) {
  if (!(error instanceof ApiError) || error.problem.code !== "conflict") return null;
  return (
    <div className="grid gap-2 text-sm">
      <p>{children}</p>
      <Button busy={busy} onClick={onKeep}>
        Save mine all the same
      </Button>
    </div>
  );
}
