import type { QueryKey } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, patch } from "../../api/client.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import type { Expected } from "./words.ts";

type Kind = keyof Expected;

const HINTS: Record<Kind, string> = {
  equals: "The whole answer. Blanks and line ends count as one blank each.",
  contains: "Words that stand in the answer, in these letters.",
  schema: "The answer, or its only block of code, is JSON that fits this schema.",
};

interface ExpectedDialogProps {
  message_id: string;
  expected: Expected | null;
  /** The answer that counts, to begin with. */
  answer: string;
  touches: QueryKey[];
  onClose: () => void;
}

/** Asks what the answer to a message should be, which stars it; or takes the star away. */
export function ExpectedDialog({ message_id, expected, answer, touches, onClose }: ExpectedDialogProps) {
  const [kind, setKind] = useState<Kind>(() => kindOf(expected));
  const [text, setText] = useState(() => textOf(expected, answer));
  const [malformed, setMalformed] = useState(false);
  const change = useChange<Expected | null>({
    run: (next) => patch(`/messages/${message_id}`, { expected: next }),
    touches,
    done: onClose,
  });
  const save = (): void => {
    const next = bodyOf(kind, text);
    setMalformed(next === null);
    if (next !== null) change.mutate(next);
  };
  const fault = faultOf(change.error);
  return (
    <Dialog title="Expected answer" onClose={onClose}>
      <Form
        change={{ ...change, mutate: save }}
        act="Star it"
        disabled={text.trim() === ""}
        onCancel={onClose}
      >
        <p className="text-sm text-soft">
          Starred messages are your test set: run them against another model or context, and see which answers
          are as expected. What the message is about is kept while it is starred; nothing else of it changes.
        </p>
        <Field label="The answer">
          <Select value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            <option value="contains">contains these words</option>
            <option value="equals">is exactly this</option>
            <option value="schema">is JSON that fits a schema</option>
          </Select>
        </Field>
        <Field
          label="Expected answer"
          hint={HINTS[kind]}
          fault={
            malformed
              ? {
                  path: "expected",
                  code: "json",
                  message: "This is no JSON object. A schema begins with { and ends with }.",
                }
              : (fault("expected") ?? fault("expected.schema"))
          }
        >
          <TextArea
            required
            spellCheck={kind !== "schema"}
            className={kind === "schema" ? "font-mono" : ""}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
        {expected !== null && (
          <Button className="justify-self-start" busy={change.isPending} onClick={() => change.mutate(null)}>
            Take the star away
          </Button>
        )}
      </Form>
    </Dialog>
  );
}

function kindOf(expected: Expected | null): Kind {
  if (expected?.schema !== undefined) return "schema";
  return expected?.equals === undefined ? "contains" : "equals";
}

function textOf(expected: Expected | null, answer: string): string {
  if (expected === null) return answer.trim();
  return expected.schema === undefined
    ? (expected.equals ?? expected.contains ?? "")
    : JSON.stringify(expected.schema, null, 2);
}

/** What is to be stored; null for a schema that is no JSON object. */
function bodyOf(kind: Kind, text: string): Expected | null {
  if (kind !== "schema") return { [kind]: text };
  try {
    const schema: unknown = JSON.parse(text);
    const is_object = typeof schema === "object" && schema !== null && !Array.isArray(schema);
    return is_object ? { schema: schema as Record<string, unknown> } : null;
  } catch {
    return null;
  }
}
