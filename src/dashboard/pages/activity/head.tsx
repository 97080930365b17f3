import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Story } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { useMoney } from "../../ui/money.ts";
import { Time } from "../../ui/time.tsx";
import { spanOf } from "../server/words.ts";
import { Star } from "../test-set/star.tsx";
import { mayReplay } from "./may-replay.ts";
import { StatusBadge } from "./status.tsx";
import { Tags } from "./tags.tsx";

const LINK = "min-w-0 text-accent underline";

/** The outcome and the costs of a message, and what belongs to it. */
export function Head({ story }: { story: Story }) {
  const { usage, cost, credits_charged, duplicates } = story;
  const { unlimited } = useMe().credits;
  const money = useMoney();
  const waits = story.status === "received" && !story.running;
  return (
    <div className="grid gap-1 text-sm text-soft">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <StatusBadge message={story} waits={waits} />
        <Time at={story.created} />
        {story.duration_ms !== null && <span>{tookWords(story.duration_ms, story.waited_ms)}</span>}
        {story.model && <span>{story.model}</span>}
        {usage && (
          <span>
            {usage.input_tokens} tokens read, {usage.output_tokens} written
          </span>
        )}
        {cost !== null && cost > 0 && <span>cost {money(cost)}</span>}
        {!unlimited && <span>{credits_charged === 1 ? "1 credit" : `${credits_charged} credits`}</span>}
        {duplicates > 0 && (
          <span>
            came {duplicates + 1} times{story.status === "rejected" ? "" : ", worked on once"}
          </span>
        )}
        {story.rules.map((name) => (
          <Badge key={name}>Rule: {name}</Badge>
        ))}
      </p>
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <InboxLink inbox_id={story.inbox_id} />
        {story.conversation_id && (
          <Link
            to="/conversations/$conversation_id"
            params={{ conversation_id: story.conversation_id }}
            className={LINK}
          >
            The conversation
          </Link>
        )}
        {story.retry_of && <Other id={story.retry_of}>The first try</Other>}
        {story.retries.map((id, index) => (
          <Other key={id} id={id}>
            {story.retries.length === 1 ? "Tried again" : `Tried again (${index + 1})`}
          </Other>
        ))}
      </p>
      <Tags story={story} />
      {(mayReplay(story) || story.expected !== null) && <Star story={story} />}
    </div>
  );
}

/** How long the work took; what a rule had it wait before is no part of that. */
function tookWords(duration_ms: number, waited_ms: number | null): string {
  const took = `took ${spanOf(Math.max(0, duration_ms - (waited_ms ?? 0)) / 1_000)}`;
  return waited_ms === null ? took : `waited ${spanOf(waited_ms / 1_000)}, then ${took}`;
}

function Other({ id, children }: { id: string; children: string }) {
  return (
    <Link to="/messages/$message_id" params={{ message_id: id }} className={LINK}>
      {children}
    </Link>
  );
}

function InboxLink({ inbox_id }: Pick<Story, "inbox_id">) {
  const { data: inboxes } = useQuery(inboxList);
  const inbox = inboxes?.find(({ id }) => id === inbox_id);
  if (!inbox) return null;
  return (
    <Link to="/inboxes/$inbox_id" params={{ inbox_id: inbox.id }} className={LINK}>
      {inbox.label || inbox.address}
    </Link>
  );
}
