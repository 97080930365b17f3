import { Link } from "@tanstack/react-router";
import type { Inbox } from "../../api/shapes.ts";

/** The inboxes that use something. */
export function InboxLinks({ inboxes }: { inboxes: Inbox[] }) {
  if (inboxes.length === 0) return <p className="text-soft">In no inbox yet.</p>;
  return (
    <ul className="grid max-h-72 gap-1 overflow-y-auto">
      {inboxes.map(({ id, label, address }) => (
        <li key={id} className="truncate">
          <Link to="/inboxes/$inbox_id" params={{ inbox_id: id }} className="text-accent underline">
            {label || address}
          </Link>
        </li>
      ))}
    </ul>
  );
}
