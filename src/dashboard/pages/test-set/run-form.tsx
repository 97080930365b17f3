import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { testRuns } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { TestRun } from "../../api/shapes.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { OtherModel, useOtherModel } from "../inboxes/other-model.tsx";

interface RunFormProps {
  onMade: (run: TestRun) => void;
  onClose: () => void;
}

/** Asks what the test set is to be run against. */
export function RunForm({ onMade, onClose }: RunFormProps) {
  const { unlimited } = useMe().credits;
  const other = useOtherModel();
  const [instruction, setInstruction] = useState("");
  const [contexts, setContexts] = useState("now");
  const [tag, setTag] = useState("");
  const change = useChange<void, TestRun>({
    run: () =>
      post<TestRun>("/v1/test-runs", {
        ...other.asked,
        ...(instruction.trim() === "" ? {} : { instruction }),
        ...(tag.trim() === "" ? {} : { tag: tag.trim() }),
        contexts,
      }),
    touches: [testRuns.queryKey],
    done: onMade,
  });
  const fault = faultOf(change.error);
  return (
    <Dialog title="Run the test set" onClose={onClose}>
      <Form change={change} act="Run it" onCancel={onClose}>
        <OtherModel {...other.fields} fault={fault} />
        <Field
          label="Other instruction"
          hint="In place of each message's own. What it came with is its material, as before."
          fault={fault("instruction")}
        >
          <TextArea value={instruction} onChange={(event) => setInstruction(event.target.value)} />
        </Field>
        <Field label="Contexts" fault={fault("contexts")}>
          <Select value={contexts} onChange={(event) => setContexts(event.target.value)}>
            <option value="now">Those they would be given today</option>
            <option value="then">Those they had, as they were then</option>
          </Select>
        </Field>
        <TextField
          label="Only those with this tag"
          maxLength={100}
          autoCapitalize="none"
          value={tag}
          fault={fault("tag")}
          onChange={setTag}
        />
        {!unlimited && (
          <p className="text-sm text-soft">It costs a credit for each message that is answered.</p>
        )}
      </Form>
    </Dialog>
  );
}
