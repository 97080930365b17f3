import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { Inbox, InboxTest } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { ModelText } from "../../ui/model-text.tsx";

/** Sends a test mail through the inbox, and shows the answer right here. It costs nothing. */
export function InboxTry({ inbox }: { inbox: Inbox }) {
  const [instruction, setInstruction] = useState("Summarise this in one sentence");
  const [content, setContent] = useState("");
  const test = useChange<void, InboxTest>({
    run: () => post<InboxTest>(`/inboxes/${inbox.id}/test`, { instruction, ...(content ? { content } : {}) }),
    touches: [["messages"]],
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    test.mutate();
  };
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Card title="A test mail">
        <form onSubmit={submit} className="grid gap-4">
          <Field label="What it should do">
            <Input
              value={instruction}
              maxLength={10_000}
              onChange={(event) => setInstruction(event.target.value)}
            />
          </Field>
          <Field label="The mail it works on" hint="May stay empty, if the instruction says it all.">
            <TextArea
              rows={6}
              value={content}
              maxLength={100_000}
              onChange={(event) => setContent(event.target.value)}
            />
          </Field>
          <Fault error={test.error} />
          <div>
            <Button look="main" type="submit" busy={test.isPending}>
              Send it
            </Button>
          </div>
        </form>
      </Card>
      <Card title="The answer">
        {test.data ? <Outcome result={test.data} /> : <p className="text-soft">It will show here.</p>}
      </Card>
    </div>
  );
}

function Outcome({ result }: { result: InboxTest }) {
  if (result.error) return <Notice look="bad">{result.error}</Notice>;
  return (
    <div className="grid gap-3">
      <ModelText text={result.result} />
      <p className="text-sm text-soft">
        {result.reply.delivered
          ? `Also mailed to ${result.reply.to}.`
          : `The mail to ${result.reply.to} is on its way.`}
      </p>
    </div>
  );
}
