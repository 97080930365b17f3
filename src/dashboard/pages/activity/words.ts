import { FlaskConical, Globe, Mail } from "lucide-react";
import type { Activity } from "../../api/shapes.ts";
import type { BadgeLook } from "../../ui/badge.tsx";

export const STATUSES: Record<Activity["status"], { look: BadgeLook; word: string }> = {
  received: { look: "accent", word: "In progress" },
  done: { look: "good", word: "Done" },
  failed: { look: "bad", word: "Failed" },
  rejected: { look: "warn", word: "Not taken" },
  limited: { look: "warn", word: "Limit reached" },
};

/** What is not as it should be with the mail that answers. */
export const REPLIES: Partial<Record<Activity["reply_status"], { look: BadgeLook; word: string }>> = {
  deferred: { look: "warn", word: "Answer is waiting" },
  bounced: { look: "bad", word: "Answer came back" },
};

export const SOURCES: Record<Activity["source"], { word: string; icon: typeof Mail }> = {
  email: { word: "Mail", icon: Mail },
  api: { word: "Call", icon: Globe },
  test: { word: "Test", icon: FlaskConical },
};

/** The words for what becomes of a mail in capture mode. */
export const KEPT_HERE = "is kept here: this server mails nothing to anybody.";

/** The words for what becomes, in capture mode, of a mail that was to be delivered before. */
export const HELD_HERE = "waits: this server mails nothing now, and mails it once it does again.";
