import { Link } from "@tanstack/react-router";
import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Activity, Connection, Inbox } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { InboxTry } from "../inboxes/inbox-try.tsx";
import { Step, type StepState } from "./step.tsx";

const EXAMPLE = `Hello,

the bridge is closed from Monday. It opens again on 3 May at 10:30.
Please tell the drivers.

Kim`;

interface MailStepProps {
  state: StepState;
  inbox: Inbox | undefined;
  model: Connection | undefined;
  /** The newest message that was answered. */
  answered: Activity | undefined;
}

export function MailStep({ state, inbox, model, answered }: MailStepProps) {
  return (
    <Step title="Send a first mail" state={state}>
      {inbox && !inbox.routed && <Attach inbox={inbox} model={model} />}
      {inbox?.routed && <InboxTry inbox={inbox} example={EXAMPLE} />}
      {answered && (
        <Notice look="good">
          <p>
            Your server answers. The last answer came <Time at={answered.created} />.
          </p>
          <div className="mt-2 flex flex-wrap gap-2 text-text">
            <Link to="/" className={`${BUTTON} bg-accent text-accent-text`}>
              Go to the activity
            </Link>
            <Link
              to="/messages/$message_id"
              params={{ message_id: answered.message_id }}
              className={`${BUTTON} border border-line bg-card`}
            >
              See how the answer came about
            </Link>
          </div>
        </Notice>
      )}
    </Step>
  );
}

/** The button that gives the model to an inbox which was made before there was one. */
function Attach({ inbox, model }: { inbox: Inbox; model: Connection | undefined }) {
  const attach = useChange({
    run: () => patch(`/inboxes/${inbox.id}`, { default_connection_id: model?.id }),
    touches: [inboxList.queryKey],
  });
  return (
    <Notice look="warn">
      This address has no model yet.{" "}
      {model && (
        <Button busy={attach.isPending} onClick={() => attach.mutate()}>
          Use {model.label}
        </Button>
      )}
    </Notice>
  );
}
