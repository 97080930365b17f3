import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { get } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection, Inbox, InboxActivity } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { brokenModel } from "./models.ts";
import { NewInbox } from "./new-inbox.tsx";

const REFRESH_MS = 30_000;

export function Inboxes() {
  const [making, setMaking] = useState(false);
  const { data: inboxes, error, isPending, refetch } = useQuery(inboxList);
  const { data: activity } = useQuery(activityList());
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
            <Tile
              key={inbox.id}
              inbox={inbox}
              activity={activity?.find(({ inbox_id }) => inbox_id === inbox.id)}
            />
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

function Tile({ inbox, activity }: { inbox: Inbox; activity: InboxActivity | undefined }) {
  return (
    <li className="grid content-start justify-items-start gap-2 rounded-xl border border-line bg-card p-4">
      <div className="flex w-full items-start justify-between gap-2">
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
      <Facts inbox={inbox} activity={activity} />
    </li>
  );
}

/** The model of an inbox, how much came today, and what failed last. */
function Facts({ inbox, activity }: { inbox: Inbox; activity: InboxActivity | undefined }) {
  const { data: connections } = useQuery(connectionList);
  const failure = activity?.last_failure;
  return (
    <div className="grid w-full gap-1 text-sm text-soft">
      <p className="wrap-anywhere">{modelWords(inbox, connections)}</p>
      {activity && (
        <p className="flex flex-wrap gap-x-3">
          <span>{mailsWords(activity.mails)}</span>
          {activity.waiting > 0 && <span>{activity.waiting} not done yet</span>}
          <Link to="/" search={{ inbox_id: inbox.id }} className="text-accent underline">
            Its activity
          </Link>
        </p>
      )}
      {failure && (
        <p className="flex min-w-0 gap-x-2">
          <Link
            to="/messages/$message_id"
            params={{ message_id: failure.message_id }}
            title={failure.error}
            className="min-w-0 truncate text-bad underline"
          >
            Last failure: {failure.error}
          </Link>
          <Time at={failure.created} />
        </p>
      )}
    </div>
  );
}

/** Nothing as long as nobody knows: its connection has not been read yet, or cannot be. */
function modelWords({ default_connection_id, routed }: Inbox, connections?: Connection[]): string {
  if (default_connection_id !== null && !connections) return "";
  const connection = connections?.find(({ id }) => id === default_connection_id);
  if (!connection) return routed ? "The server’s own model" : "No model yet";
  const { label, model } = connection;
  return model === null || model === label ? label : `${label}, ${model}`;
}

/** The words for a number of mails. Tests and calls are in the activity as well, and are no mail. */
function mailsWords(mails: number): string {
  if (mails === 0) return "No mail today, tests and calls aside";
  return mails === 1 ? "1 mail today" : `${mails} mails today`;
}

/** The activity since midnight in the time zone of the browser. */
const activityList = () =>
  queryOptions({
    queryKey: ["inbox-activity"],
    queryFn: ({ signal }) => {
      const midnight = Math.floor(new Date().setHours(0, 0, 0, 0) / 1_000);
      return get<InboxActivity[]>(`/inboxes/activity?since=${midnight}`, signal);
    },
    refetchInterval: REFRESH_MS,
  });

export function StateOf({ inbox }: { inbox: Inbox }) {
  const { data: connections } = useQuery(connectionList);
  if (!inbox.enabled) return <Badge look="warn">Rests</Badge>;
  if (inbox.paused !== null) return <Badge look="warn">Paused</Badge>;
  if (!inbox.routed) return <Badge look="warn">No model</Badge>;
  if (brokenModel(inbox, connections)) return <Badge look="bad">Model does not work</Badge>;
  return inbox.reply_enabled ? <Badge look="good">Answers</Badge> : <Badge>Reads only</Badge>;
}
