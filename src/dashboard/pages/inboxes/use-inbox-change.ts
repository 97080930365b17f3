import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { get, patch } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Inbox, InboxChange } from "../../api/shapes.ts";
import { useToast } from "../../ui/toast.tsx";

interface Saved {
  members: (keyof InboxChange)[];
  /** What they said before, and what they say now. */
  before: InboxChange;
  made: Inbox;
}

/** Changes an inbox, and offers to undo that as long as nobody has changed the same again. */
export function useInboxChange(inbox: Inbox) {
  const say = useToast();
  const touches = [inboxList.queryKey];
  const path = `/inboxes/${inbox.id}`;
  const back = useChange<Saved>({
    run: async ({ members, before, made }) => {
      refuseChanged(await get<Inbox>(path), made, members);
      const { rules_version } = made;
      return patch<Inbox>(path, { ...before, ...(members.includes("rules") ? { rules_version } : {}) });
    },
    touches,
    done: () => say("It is as it was before."),
  });
  return useChange<InboxChange, Saved>({
    run: async (change) => {
      // The version of what was there before is no version of what is to be undone.
      const { rules_version: _, ...changed } = change;
      const members = Object.keys(changed) as (keyof InboxChange)[];
      const before: InboxChange = Object.fromEntries(members.map((name) => [name, inbox[name]]));
      return { members, before, made: await patch<Inbox>(path, change) };
    },
    touches,
    done: (saved) => say("Saved.", () => back.mutateAsync(saved)),
  });
}
