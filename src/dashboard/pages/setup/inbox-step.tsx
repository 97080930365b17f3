import { Link } from "@tanstack/react-router";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Connection, Inbox } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Step, type StepState } from "./step.tsx";

interface InboxStepProps {
  state: StepState;
  inbox: Inbox | undefined;
  model: Connection | undefined;
  onDone: () => void;
}

export function InboxStep({ state, inbox, model, onDone }: InboxStepProps) {
  const make = useChange<void, Inbox>({
    run: () =>
      post<Inbox>("/inboxes", { label: "Desk", ...(model ? { default_connection_id: model.id } : {}) }),
    touches: [inboxList.queryKey],
    done: onDone,
  });
  return (
    <Step
      title="Get an address"
      state={state}
      summary={inbox && <Copyable text={inbox.address} label="Copy the address" />}
    >
      <p className="text-soft">What you write to it is done, and the answer comes back by mail.</p>
      <div className="flex flex-wrap gap-2">
        <Button look="main" busy={make.isPending} onClick={() => make.mutate()}>
          Get an address
        </Button>
        <Link to="/recipes" className={`${BUTTON} border border-line bg-card`}>
          Begin with a recipe
        </Link>
      </div>
      <Fault error={make.error} />
    </Step>
  );
}
