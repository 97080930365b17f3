import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { LASTING_FAULTS, type MessageReason } from "../../../reasons.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import { useSold } from "../../api/session.ts";
import type { Story } from "../../api/shapes.ts";

/** The tab on the page of an inbox that has a setting, and the words of the link to it. */
const IN_INBOX: Record<string, [tab: string, words: string]> = {
  not_allowlisted: ["senders", "Who may write to this inbox"],
  auth_failed: ["senders", "Who may write to this inbox"],
  auto_reply: ["senders", "Mail that is usually left alone"],
  bulk: ["senders", "Mail that is usually left alone"],
  mailing_list: ["senders", "Mail that is usually left alone"],
  no_reply_sender: ["senders", "Mail that is usually left alone"],
  sender_unauthenticated: ["senders", "Mail that is usually left alone"],
  target_not_allowed: ["tools", "The tools of this inbox"],
  inbox_paused: ["settings", "The settings of this inbox"],
  paused_too_long: ["settings", "The settings of this inbox"],
  no_provider: ["settings", "The model of this inbox"],
  storage_full: ["settings", "How long this inbox keeps content"],
  reply_disabled: ["settings", "How this inbox answers"],
};
type Elsewhere = [to: "/connections" | "/billing" | "/inboxes" | "/usage", words: string];
const ELSEWHERE: Record<string, Elsewhere> = {
  target_not_connected: ["/connections", "Your connections"],
  unknown_target: ["/connections", "Your connections"],
  budget_used_up: ["/usage", "What models have cost, and your budgets"],
  plan_limit: ["/inboxes", "Your inboxes"],
};
/** Where plans are sold, these are mended by a larger one. */
const SOLD = new Set(["credit_limit", "plan_limit"]);
const PLAN: Elsewhere = ["/billing", "Your plan and credits"];

const LINK = "font-medium underline";

interface SettingLinkProps extends Pick<Story, "inbox_id" | "reason"> {
  /** The words for what went wrong. */
  error?: Story["error"];
}

/** The link to the setting that decided about a mail, if there is one. */
export function SettingLink({ inbox_id, reason, error = null }: SettingLinkProps) {
  const sold = useSold();
  if (LASTING_FAULTS.has(reason as MessageReason))
    return <ConnectionLink error={error} inbox_id={inbox_id} />;
  const elsewhere = sold && SOLD.has(reason ?? "") ? PLAN : ELSEWHERE[reason ?? ""];
  if (elsewhere)
    return (
      <Link to={elsewhere[0]} className={LINK}>
        {elsewhere[1]}
      </Link>
    );
  const setting = IN_INBOX[reason ?? ""];
  if (!setting || inbox_id === null) return null;
  return <InboxTabLink inbox_id={inbox_id} tab={setting[0]} words={setting[1]} />;
}

/**
 * The link to the connection of a model that a message failed at. It has the words of the failure until it is tested;
 * after that, the one that the inbox has is it if it still does not work.
 */
function ConnectionLink({ error, inbox_id }: Pick<Story, "error" | "inbox_id">) {
  const { data: connections } = useQuery(connectionList);
  const { data: inboxes } = useQuery(inboxList);
  const usual = inboxes?.find(({ id }) => id === inbox_id)?.default_connection_id;
  const failed =
    connections?.find(({ last_error }) => last_error !== null && last_error === error) ??
    connections?.find(({ id, status }) => id === usual && status === "error");
  return failed ? (
    <Link to="/connections/$connection_id" params={{ connection_id: failed.id }} className={LINK}>
      The connection “{failed.label}”
    </Link>
  ) : (
    <Link to="/connections" className={LINK}>
      Your connections
    </Link>
  );
}

/** The link to a tab on the page of an inbox. */
export function InboxTabLink({ inbox_id, tab, words }: { inbox_id: string; tab: string; words: string }) {
  return (
    <Link to="/inboxes/$inbox_id" params={{ inbox_id }} hash={tab} className={LINK}>
      {words}
    </Link>
  );
}
