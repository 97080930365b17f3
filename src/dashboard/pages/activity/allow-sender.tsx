import { useQuery } from "@tanstack/react-query";
import { UserRoundCheck } from "lucide-react";
import { useState } from "react";
import { inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Inbox, Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { useInboxChange } from "../inboxes/use-inbox-change.ts";

/** Puts the sender of a mail on the list of its inbox, after saying what that changes for them and for everybody else. */
export function AllowSender({ story }: { story: Story }) {
  const { data: inboxes } = useQuery(inboxList);
  const { email } = useMe();
  const inbox = inboxes?.find(({ id }) => id === story.inbox_id);
  const { sender, authority, source } = story;
  if (!inbox || sender === null || source !== "email" || !inbox.enabled) return null;
  if (authority === "owner" || authority === "listed") return null;
  if (sender === email || inbox.allowlist_senders.includes(sender)) return null;
  return <Ask inbox={inbox} sender={sender} story={story} />;
}

function Ask({ inbox, sender, story }: { inbox: Inbox; sender: string; story: Story }) {
  const [asked, setAsked] = useState(false);
  const change = useInboxChange(inbox);
  const is_unproven = story.authority === "unauthenticated";
  const is_first = inbox.allowlist_senders.length === 0;
  return (
    <>
      <Button icon={<UserRoundCheck />} onClick={() => setAsked(true)}>
        Allow this sender
      </Button>
      {asked && (
        <Confirm
          title={`Allow ${sender}?`}
          act={is_first ? "Allow only listed senders from now on" : "Allow this sender"}
          cancel="Leave it as it is"
          busy={change.isPending}
          error={change.error}
          onConfirm={() =>
            change.mutate(
              { allowlist_senders: [...inbox.allowlist_senders, sender] },
              { onSuccess: () => setAsked(false) },
            )
          }
          onClose={() => setAsked(false)}
        >
          <p className="wrap-anywhere">
            {is_unproven ? "Mail that is proven to be theirs" : "Their mail"} is worked on from now on, and
            their words are instructions to {inbox.label || inbox.address}, as yours are.
          </p>
          {is_first && (
            <p className="font-medium text-warn">
              The list of this inbox is empty: anybody may write to it. This would be its first entry, and
              mail from everybody who is not on it would be refused.
            </p>
          )}
          {is_unproven && (
            <p className="text-warn">
              Nothing proved that this mail was theirs. Mail of a listed sender that is not proven is refused:
              they have to send it through the mail provider of their address.
            </p>
          )}
          {story.status === "rejected" && <p>This mail is not kept, so ask them to send it again.</p>}
        </Confirm>
      )}
    </>
  );
}
