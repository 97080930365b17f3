import { CheckCheck } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import type { GrowingList } from "../../api/growing-list.ts";
import type { Activity } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { useToast } from "../../ui/toast.tsx";

/** As many as one can still wait for, one after the other, and undo in time. */
const MOST_CHOSEN = 500;
const PAGE = 100;
const LONGEST_READ_MS = 30_000;

interface SelectAllProps {
  list: GrowingList<Activity>;
  disabled: boolean;
  onChoose: (messages: Activity[]) => void;
}

/** The button that chooses all that a list has, also what the page has not shown yet. */
export function SelectAll({ list, disabled, onChoose }: SelectAllProps) {
  const say = useToast();
  const choose = useChange<void, Activity[]>({
    run: () => newest(list),
    touches: [],
    done: (messages) => {
      onChoose(messages);
      if (messages.length === MOST_CHOSEN) say(`The newest ${MOST_CHOSEN} are chosen.`);
    },
  });
  return (
    <>
      <Button
        icon={<CheckCheck />}
        busy={choose.isPending}
        disabled={disabled}
        onClick={() => choose.mutate()}
      >
        Select all
      </Button>
      <Fault error={choose.error} />
    </>
  );
}

async function newest({ read }: GrowingList<Activity>): Promise<Activity[]> {
  const found: Activity[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor, AbortSignal.timeout(LONGEST_READ_MS), PAGE);
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < MOST_CHOSEN);
  return found.slice(0, MOST_CHOSEN);
}
