import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError } from "../api/client.ts";
import { useSold } from "../api/session.ts";
import { Button } from "./button.tsx";
import { classes } from "./class-names.ts";

const LOOKS = {
  info: { icon: Info, look: "bg-accent-soft text-text" },
  good: { icon: CircleCheck, look: "bg-good-soft text-good" },
  warn: { icon: TriangleAlert, look: "bg-warn-soft text-warn" },
  bad: { icon: CircleAlert, look: "bg-bad-soft text-bad" },
};

export function Notice({ look = "info", children }: { look?: keyof typeof LOOKS; children: ReactNode }) {
  const { icon: Icon, look: colours } = LOOKS[look];
  return (
    <div
      role={look === "bad" ? "alert" : "status"}
      className={classes("flex gap-3 rounded-md px-3 py-2 text-sm", colours)}
    >
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 flex-1 wrap-anywhere">{children}</div>
    </div>
  );
}

interface FaultProps {
  error: unknown;
  retry?: () => void;
  /** Which of several things it is about. */
  about?: string;
}

/** Mends of refusals that a page has in a way of its own. */
const MENDS: Record<string, string> = {
  unauthorized: "Sign in again in another tab. What you wrote stays here until you come back and send it.",
  session_required: "Sign in again here, and do it within ten minutes.",
};

/** Why something did not work and what mends it, in the server's own words. */
export function Fault({ error, retry, about }: FaultProps) {
  if (!error) return null;
  return (
    <Notice look="bad">
      <p>
        {about && <strong>{about}: </strong>}
        {errorWords(error)}
      </p>
      {fixOf(error) && <p className="text-text">{fixOf(error)}</p>}
      <MendLink error={error} />
      {retry && (
        <Button className="mt-2" onClick={retry}>
          Try again
        </Button>
      )}
    </Notice>
  );
}

/** Refusals that are mended on the page of an inbox, and those that a larger plan mends where plans are sold. */
const BY_INBOX = new Set(["inbox_not_routed", "inbox_paused", "inbox_required", "storage_full"]);
const BY_PLAN = new Set(["plan_limit_reached", "plan_required"]);

function MendLink({ error }: { error: unknown }) {
  const sold = useSold();
  const code = error instanceof ApiError ? error.problem.code : "";
  if (BY_INBOX.has(code))
    return (
      <Link {...LINK} to="/inboxes">
        Your inboxes
      </Link>
    );
  return sold && BY_PLAN.has(code) ? (
    <Link {...LINK} to="/billing">
      Your plan
    </Link>
  ) : null;
}

const LINK = { className: "font-medium underline" };

/** What there is to say of an error, without its mend. */
export function errorWords(error: unknown): string {
  if (error instanceof ApiError)
    return error.problem.code === "unauthorized" ? "You are no longer signed in." : error.message;
  return "This page made a mistake. Load it again; if that does not help, tell us what you did.";
}

function fixOf(error: unknown): string | undefined {
  return error instanceof ApiError ? (MENDS[error.problem.code] ?? error.problem.fix) : undefined;
}
