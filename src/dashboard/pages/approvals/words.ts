import type { Approval } from "../../api/shapes.ts";
import type { BadgeLook } from "../../ui/badge.tsx";

/** What each status is called. */
export const STATUSES: Record<Approval["status"], { word: string; look: BadgeLook }> = {
  pending: { word: "Waits for you", look: "warn" },
  approved: { word: "Being done", look: "accent" },
  done: { word: "Done", look: "good" },
  failed: { word: "Failed", look: "bad" },
  unknown: { word: "Not known", look: "bad" },
  refused: { word: "Refused", look: "plain" },
  expired: { word: "Expired", look: "plain" },
};

const CAUSES: Record<Approval["cause"], string> = {
  boundary: "You are asked because the instruction does not allow this by itself.",
  marked: "You are asked because you have marked this tool as one to ask about first.",
  flag: "You are asked because the instruction says --ask.",
};

/** Why the owner is asked, and whose words may be behind it. */
export function causeWords({ cause, read_others }: Approval): string {
  return `${CAUSES[cause]} ${
    read_others
      ? "Before the model wanted this it had read words of others, such as a mail, a file or the answer of a tool: they may be behind it. Look whether it is what you want."
      : "The words in it are those of the model."
  }`;
}

/** Whose work it was that wanted the call. */
export function workWords({ sender, subject }: Approval): string {
  const whose = sender === null ? "a call over HTTP" : `a mail from ${sender}`;
  return subject ? `In the work on ${whose}: ${subject}` : `In the work on ${whose}`;
}
