import { useQuery } from "@tanstack/react-query";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { get, patch } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";

/** Whether calls that name no inbox go to this one, and the button for that. */
export function InboxDefault({ inbox }: { inbox: Inbox }) {
  const say = useToast();
  const { data: inboxes = [] } = useQuery(inboxList);
  const before = inboxes.find(({ is_default }) => is_default);
  const tell = (id: string) => patch<Inbox>(`/inboxes/${id}`, { is_default: true });
  const touches = [inboxList.queryKey];
  const back = useChange<{ old: Inbox; made: Inbox }>({
    run: async ({ old, made }) => {
      refuseChanged(await get<Inbox>(`/inboxes/${made.id}`), made, ["is_default"]);
      return tell(old.id);
    },
    touches,
    done: () => say("It is as it was before."),
  });
  const choose = useChange<Inbox | undefined, Inbox>({
    run: () => tell(inbox.id),
    touches,
    done: (made, old) => say("Saved.", old && (() => back.mutateAsync({ old, made }))),
  });
  return (
    <Card title="Calls that name no inbox">
      {inbox.is_default ? (
        <p className="text-soft">
          They go here: it is your default inbox. To have another one, make that one the default.
        </p>
      ) : (
        <div className="flex flex-wrap items-center justify-between gap-2">
          <p className="text-soft">
            They go to {before ? `“${before.label || before.local_part}”` : "another inbox"}.
          </p>
          <Button busy={choose.isPending} onClick={() => choose.mutate(before)}>
            Make this the default inbox
          </Button>
        </div>
      )}
      <Fault error={choose.error} />
    </Card>
  );
}
