import { Link } from "@tanstack/react-router";
import { allOf } from "../../../lib/lists.ts";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { Inbox, RulesTried } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Time } from "../../ui/time.tsx";
import { actionWords, type Rule } from "./rule-words.ts";

type Acts = RulesTried["items"][number]["do"];

const BECOMES: Record<RulesTried["items"][number]["becomes"], string> = {
  worked_on: "worked on",
  skipped: "left out",
  kept: "kept",
  waits: "waits",
};

/** What rules give a mail together, behind their names. */
function doesWords(acts: Acts): string {
  const words = actionWords(acts);
  return words.length === 0 ? "" : `: ${allOf(words, "and")}`;
}

/** What the rules would have had done with the newest mails of the inbox. */
export function TryRules({ inbox, rules }: { inbox: Inbox; rules: Rule[] }) {
  const tried = useChange<void, RulesTried>({
    run: () => post<RulesTried>(`/inboxes/${inbox.id}/rules/try`, { rules }),
    touches: [],
  });
  return (
    <div className="grid gap-3">
      <p className="text-sm text-soft">
        Holds these rules against the last 100 mails of this inbox that are still kept. Nothing is changed,
        and no model is asked.
      </p>
      <div>
        <Button busy={tried.isPending} onClick={() => tried.mutate()}>
          Try on the last 100 mails
        </Button>
      </div>
      <Fault error={tried.error} />
      {tried.data && <Outcome tried={tried.data} />}
    </div>
  );
}

function Outcome({ tried: { items, unread } }: { tried: RulesTried }) {
  if (items.length === 0) return <p role="status">No mail of this inbox is kept here yet.</p>;
  const matched = items.filter(({ rules }) => rules.length > 0);
  return (
    <div className="grid gap-2" role="status">
      <p>
        {matched.length} of {items.length} mails would have met a rule
        {unread > 0 ? `; ${unread} could not be read any more` : ""}.
      </p>
      <Scroll label="Mails and what becomes of them" className="max-h-96">
        <ul className="grid gap-2">
          {items.map(({ message_id, subject, sender, created, rules, becomes, do: acts, asks }) => (
            <li key={message_id} className="grid gap-0.5 border-b border-line pb-2">
              <span className="flex flex-wrap justify-between gap-x-3">
                <Link
                  to="/messages/$message_id"
                  params={{ message_id }}
                  className="min-w-0 truncate text-accent underline"
                >
                  {subject || "(no subject)"}
                </Link>
                <span className="font-medium">{BECOMES[becomes]}</span>
              </span>
              <span className="text-sm text-soft">
                {sender}, <Time at={created} />
              </span>
              {rules.length > 0 && (
                <span className="text-sm">
                  {rules.join(", ")}
                  {doesWords(acts)}
                </span>
              )}
              {asks.map((question) => (
                <span key={question} className="text-sm text-warn">
                  The model would be asked: {question}
                </span>
              ))}
            </li>
          ))}
        </ul>
      </Scroll>
    </div>
  );
}
