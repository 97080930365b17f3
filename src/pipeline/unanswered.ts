import type { InboxRow, MessageRow } from "../db/schema.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import type { RunInput } from "./input.ts";
import type { RunSettings } from "./settings.ts";

interface Unanswered {
  message: MessageRow;
  inbox: InboxRow;
  settings: Pick<RunSettings, "reply" | "by_rule">;
  input: Pick<RunInput, "gathered">;
}

const MACHINE =
  "a program wrote it, or it was sent to many. Such mail is never answered, or two programs might answer each other for ever.";

const REASONS: Record<string, string> = {
  sender_unauthenticated:
    "nothing shows that it is from its sender, and whoever was named would get a mail that they never asked for. “Answer strangers whose address cannot be verified” of the inbox has such mail answered.",
  address_rotated: "the inbox has a new address since, which a stranger is not told.",
};

/**
 * Returns why the sender of a mail gets no answer to a run that ended in this state, and what would change that; null
 * if nobody waits for an answer.
 */
export function whyUnanswered(
  { message, inbox, settings, input }: Unanswered,
  { state }: { state: "done" | "failed" | "limited" },
): string | null {
  if (message.source === "api" && message.schedule_id === null && message.approval_id === null) return null;
  if (input.gathered?.count === 0) return say("there was no mail for this digest.");
  if (!settings.reply) return say(whoForbids(settings.by_rule.reply));
  if (inbox.reply_enabled !== 1)
    return say("the inbox is set to answer nobody. “Answer by mail” in its settings changes that.");
  const reason = message.no_reply_reason;
  if (reason !== null) return say(REASONS[reason] ?? MACHINE);
  return state !== "done" && !hasAuthority(message) ? UNTOLD[state] : null;
}

const UNTOLD = {
  failed:
    "No mail was sent: strangers are not told of failures. The owner of the inbox is, once a day at most.",
  limited:
    "No mail was sent: strangers are not told of budgets. The owner of the inbox is, once a day at most.",
};

function whoForbids(rule: string | undefined): string {
  return rule === undefined
    ? "the instruction says --no-reply."
    : `the rule “${rule}” of the inbox has it so. Change that in the rule to have such mail answered.`;
}

function say(why: string): string {
  return `No answer was mailed: ${why}`;
}
