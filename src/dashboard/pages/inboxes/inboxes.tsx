import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { inboxList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { NewInbox } from "./new-inbox.tsx";

export function Inboxes() {
  const [making, setMaking] = useState(false);
  const { data: inboxes, error, isPending, refetch } = useQuery(inboxList);
  const { limits } = useMe();
  const button = (
    <Button look="main" icon={<Plus />} onClick={() => setMaking(true)}>
      New inbox
    </Button>
  );
  return (
    <Page
      title="Inboxes"
      intro="Each inbox is a mail address with its own model, tools and rules. Write to it, and the answer comes back."
      actions={inboxes && inboxes.length > 0 && button}
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your inboxes" />}
      {inboxes?.length === 0 && (
        <Empty title="No inbox yet" action={button}>
          An inbox is an address you can write to. Give it a name, and it can answer in a minute.
        </Empty>
      )}
      {inboxes && inboxes.length > 0 && (
        <ul className="grid gap-3 sm:grid-cols-2">
          {inboxes.map((inbox) => (
            <Tile key={inbox.id} inbox={inbox} />
          ))}
        </ul>
      )}
      {inboxes && (
        <p className="text-sm text-soft">
          <Allowance count={inboxes.length} limit={limits.inboxes} noun="inboxes" />
        </p>
      )}
      {making && <NewInbox onClose={() => setMaking(false)} />}
    </Page>
  );
}

function Tile({ inbox }: { inbox: Inbox }) {
  return (
    <li className="grid gap-2 rounded-xl border border-line bg-card p-4">
      <div className="flex items-start justify-between gap-2">
        <Link
          to="/inboxes/$inbox_id"
          params={{ inbox_id: inbox.id }}
          className="min-w-0 truncate font-semibold hover:underline"
        >
          {inbox.label || inbox.local_part}
        </Link>
        <span className="flex flex-wrap justify-end gap-1">
          {inbox.is_default && <Badge>Default</Badge>}
          <StateOf inbox={inbox} />
        </span>
      </div>
      <Copyable text={inbox.address} label="Copy the address" />
    </li>
  );
}

export function StateOf({ inbox }: { inbox: Inbox }) {
  if (!inbox.enabled) return <Badge look="warn">Rests</Badge>;
  if (!inbox.routed) return <Badge look="warn">No model</Badge>;
  return inbox.reply_enabled ? <Badge look="good">Answers</Badge> : <Badge>Reads only</Badge>;
}
