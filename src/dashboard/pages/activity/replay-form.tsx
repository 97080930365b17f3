import type { QueryKey } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import type { Replay, Story } from "../../api/shapes.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { OtherModel, useOtherModel } from "../inboxes/other-model.tsx";

interface ReplayFormProps {
  story: Story;
  touches: QueryKey[];
  onMade: (replay: Replay) => void;
  onClose: () => void;
}

/** Asks what is to be otherwise in another run of a message. */
export function ReplayForm({ story, touches, onMade, onClose }: ReplayFormProps) {
  const { unlimited } = useMe().credits;
  const other = useOtherModel();
  const [instruction, setInstruction] = useState(story.instruction);
  const [contexts, setContexts] = useState("then");
  const change = useChange<void, Replay>({
    run: () =>
      post<Replay>(`/messages/${story.message_id}/replay`, {
        ...other.asked,
        ...(instruction.trim() === "" || instruction === story.instruction ? {} : { instruction }),
        contexts,
      }),
    touches,
    done: onMade,
  });
  const fault = faultOf(change.error);
  return (
    <Dialog title="Run it again, otherwise" onClose={onClose}>
      <Form change={change} act="Run it" onCancel={onClose}>
        <OtherModel {...other.fields} fault={fault} />
        <Field
          label="Instruction"
          hint="What the message came with is its material, as before."
          fault={fault("instruction")}
        >
          <TextArea value={instruction} onChange={(event) => setInstruction(event.target.value)} />
        </Field>
        <Field label="Contexts" fault={fault("contexts")}>
          <Select value={contexts} onChange={(event) => setContexts(event.target.value)}>
            <option value="then">Those it had, as they were then</option>
            <option value="now">Those it would be given today</option>
          </Select>
        </Field>
        {!unlimited && <p className="text-sm text-soft">It costs a credit if it ends well.</p>}
      </Form>
    </Dialog>
  );
}
