import { useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { ArrowDown, ArrowLeft, ArrowUp } from "lucide-react";
import type { MouseEvent } from "react";
import { messageList, readSoFar } from "../../api/messages.ts";
import type { Story } from "../../api/shapes.ts";
import { BUTTON } from "../../ui/button.tsx";
import { type Choice, choiceOf, filtersOf } from "./choice.ts";

/** The position in this tab's history of the list that a message was opened from. */
let list_at: number | undefined;

/** The position of this page in the tab's history, which the router keeps. */
function placeNow(): number {
  return (history.state as { __TSR_index?: number } | null)?.__TSR_index ?? 0;
}

/** Notes the position of the list; called when a message is opened from it. */
export function leaveList(): void {
  list_at = placeNow();
}

/** The links back to where the list was left, and to the messages beside this one. */
export function Place({ story }: { story: Story }) {
  const choice = choiceOf(useSearch({ strict: false }));
  const { newer, older } = useNeighbours(story, choice);
  const goBack = (event: MouseEvent): void => {
    const steps = list_at === undefined ? 0 : list_at - placeNow();
    if (steps >= 0 || event.metaKey || event.ctrlKey) return;
    // A step back, because a link would show the top of the list.
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
    // The link replaces this page, so that the list stays one step back however many messages were looked at.
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

/**
 * The messages beside this one in the list that it was opened from, as far as that has been read; else among all
 * messages.
 */
function useNeighbours({ message_id, newer, older }: Story, choice: Choice): Pick<Story, "newer" | "older"> {
  const ids = readSoFar(useQueryClient(), messageList(filtersOf(choice))).map((item) => item.message_id);
  const at = ids.indexOf(message_id);
  const is_narrowed = Object.keys(choice).length > 0;
  if (at < 0) return is_narrowed ? { newer: null, older: null } : { newer, older };
  return {
    newer: ids[at - 1] ?? (is_narrowed ? null : newer),
    older: ids[at + 1] ?? (is_narrowed ? null : older),
  };
}
