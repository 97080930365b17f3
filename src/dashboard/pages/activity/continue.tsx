import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { FormFrame, RestOfFaults } from "../../ui/form-faults.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { InstructionField } from "../playground/instruction-field.tsx";
import { Outcome, UnderWay } from "../playground/outcome.tsx";
import { useRun } from "../playground/run.ts";
import { useVocabulary } from "../playground/vocabulary.ts";

interface ContinueProps {
  inbox_id: string | null;
  conversation_id: string;
  /** Set on a page that shows each turn once it has ended, so that the answer need not be here as well. */
  in_thread?: boolean;
}

/** A form that goes on with a conversation where it is read, as an answer by mail would. */
export function Continue({ inbox_id, ...rest }: ContinueProps) {
  const { data: inboxes } = useQuery(inboxList);
  const inbox = inboxes?.find(({ id }) => id === inbox_id);
  if (!inbox?.enabled || !inbox.routed || inbox.paused !== null) return null;
  return <Field inbox={inbox} {...rest} />;
}

function Field({
  inbox,
  conversation_id,
  in_thread = false,
}: Omit<ContinueProps, "inbox_id"> & { inbox: Inbox }) {
  const [instruction, setInstruction] = useState("");
  const known = useVocabulary(inbox);
  const { unlimited } = useMe().credits;
  const run = useRun(() => setInstruction(""));
  const send = (): void =>
    run.start({ instruction, content: "", inbox_id: inbox.id, files: [], conversation_id });
  const isOver = run.result !== undefined && run.result.status !== "processing";
  return (
    <Card title="Go on with this conversation">
      <div className="grid gap-4">
        {run.result && !(in_thread && isOver) && (
          <div aria-live="polite" className="grid gap-3">
            <Outcome result={run.result} />
          </div>
        )}
        {run.running && <UnderWay run={run} />}
        <Fault error={run.lost} />
        <FormFrame error={run.refused} onSubmit={send} className="grid gap-3">
          <InstructionField
            value={instruction}
            fault={faultOf(run.refused)("instruction")}
            known={known}
            onChange={setInstruction}
          />
          <RestOfFaults />
          <div className="flex flex-wrap items-center gap-3">
            <Button look="main" type="submit" busy={run.running}>
              Send
            </Button>
            <p className="text-sm text-soft">
              It knows your own earlier turns here{!unlimited && ", and costs a credit if it ends well"}.
            </p>
          </div>
        </FormFrame>
      </div>
    </Card>
  );
}
