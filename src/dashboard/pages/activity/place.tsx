import { useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { ArrowDown, ArrowLeft, ArrowUp } from "lucide-react";
import type { MouseEvent } from "react";
import { messageList } from "../../api/messages.ts";
import type { Activity, Page, Story } from "../../api/shapes.ts";
import { BUTTON } from "../../ui/button.tsx";
import { type Choice, choiceOf, filtersOf } from "./choice.ts";

/** Where in the history of this tab the list is that a message was opened from. */
let list_at: number | undefined;

/** How far this page is from the beginning of the tab; the router keeps it. */
function placeNow(): number {
  return (history.state as { __TSR_index?: number } | null)?.__TSR_index ?? 0;
}

/** To be called as a message is opened from the list. */
export function leaveList(): void {
  list_at = placeNow();
}

/** The way back to where the list was left, and to the messages beside this one in it. */
export function Place({ story }: { story: Story }) {
  const choice = choiceOf(useSearch({ strict: false }));
  const { newer, older } = useNeighbours(story, choice);
  const goBack = (event: MouseEvent): void => {
    const steps = list_at === undefined ? 0 : list_at - placeNow();
    if (steps >= 0 || event.metaKey || event.ctrlKey) return;
    // Not by a link, which would begin at its top.
    event.preventDefault();
    history.go(steps);
  };
  return (
    <nav aria-label="Beside this message" className="flex flex-wrap items-center gap-2">
      <Link to="/" search={choice} onClick={goBack} className={`${BUTTON} -ml-3 text-soft hover:bg-hover`}>
        <ArrowLeft aria-hidden />
        <span>
          Back<span className="max-sm:sr-only"> to the activity</span>
        </span>
      </Link>
      <span className="ml-auto flex gap-1">
        <Beside id={newer} choice={choice} icon={ArrowUp} words="Newer" />
        <Beside id={older} choice={choice} icon={ArrowDown} words="Older" />
      </span>
    </nav>
  );
}

function Beside({
  id,
  choice,
  icon: Icon,
  words,
}: {
  id: string | null;
  choice: Choice;
  icon: typeof ArrowUp;
  words: string;
}) {
  if (id === null) return null;
  return (
    // Replaces this page: one step back is the list, however many were looked at.
    <Link
      to="/messages/$message_id"
      params={{ message_id: id }}
      search={choice}
      replace
      className={`${BUTTON} border border-line bg-card hover:bg-hover`}
    >
      <Icon aria-hidden /> {words}
    </Link>
  );
}

/** In the list that it was opened from, as far as that has been read; else of all messages. */
function useNeighbours({ message_id, newer, older }: Story, choice: Choice): Pick<Story, "newer" | "older"> {
  const { queryKey } = messageList(filtersOf(choice));
  const data = useQueryClient().getQueryData<InfiniteData<Page<Activity>>>(queryKey);
  const ids = data?.pages.flatMap(({ items }) => items.map((item) => item.message_id)) ?? [];
  const at = ids.indexOf(message_id);
  const is_narrowed = Object.keys(choice).length > 0;
  if (at < 0) return is_narrowed ? { newer: null, older: null } : { newer, older };
  return {
    newer: ids[at - 1] ?? (is_narrowed ? null : newer),
    older: ids[at + 1] ?? (is_narrowed ? null : older),
  };
}
