import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";

interface TagDialogProps {
  title: string;
  /** Such as "Tag them". */
  act: string;
  change: { mutate: (word: string) => void; isPending: boolean; error: unknown };
  onClose: () => void;
}

/** Asks for a tag, and stays open with what is wrong with it. */
export function TagDialog({ title, act, change, onClose }: TagDialogProps) {
  const [word, setWord] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        change={{ ...change, mutate: () => change.mutate(word.trim()) }}
        act={act}
        disabled={word.trim() === ""}
        onCancel={onClose}
      >
        <TextField
          label="Tag"
          hint="One word, such as #paid. You find them by it in the filter “Tag”."
          required
          maxLength={100}
          autoCapitalize="none"
          value={word}
          fault={faultOf(change.error)("tags")}
          onChange={setWord}
        />
      </Form>
    </Dialog>
  );
}
