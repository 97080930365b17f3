import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Inbox } from "../../api/shapes.ts";

interface InboxLinksProps {
  inboxes: Inbox[];
  uses: (inbox: Inbox) => boolean;
  /** The tab on the page of an inbox where it is chosen. */
  tab: "tools" | "settings";
}

const TABS = { tools: "Tools", settings: "Settings" };

/** Links to the inboxes that use something or, if none does, to where it can be chosen: until then it has no effect. */
export function InboxLinks({ inboxes, uses, tab }: InboxLinksProps) {
  const users = inboxes.filter(uses);
  if (inboxes.length === 0)
    return (
      <p className="text-soft">
        You have no inbox yet that could use it.{" "}
        <Link to="/inboxes" className="text-accent underline">
          Make one
        </Link>
      </p>
    );
  if (users.length > 0) return <List inboxes={users} />;
  return (
    <div className="grid gap-2">
      <p className="text-soft">No inbox uses it yet. Give it to one:</p>
      <List inboxes={inboxes} tab={tab}>
        {" "}
        › {TABS[tab]}
      </List>
    </div>
  );
}

function List({ inboxes, tab, children }: { inboxes: Inbox[]; tab?: string; children?: ReactNode }) {
  return (
    <ul className="grid max-h-72 gap-1 overflow-y-auto">
      {inboxes.map(({ id, label, address }) => (
        <li key={id} className="truncate">
          <Link
            to="/inboxes/$inbox_id"
            params={{ inbox_id: id }}
            {...(tab ? { hash: tab } : {})}
            className="text-accent underline"
          >
            {label || address}
            {children}
          </Link>
        </li>
      ))}
    </ul>
  );
}
