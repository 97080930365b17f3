import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { serverFacts, useMe } from "../../api/session.ts";
import type { Inbox, InboxTest } from "../../api/shapes.ts";
import { Field, TextArea } from "../../ui/field.tsx";
import { Files } from "../../ui/files.tsx";
import { Form } from "../../ui/form.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Spinner } from "../../ui/spinner.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Steps } from "../activity/steps.tsx";
import { KEPT_HERE } from "../activity/words.ts";

/** Sends a test mail through the inbox, and shows the answer right here. It costs nothing. */
export function InboxTry({ inbox, example = "" }: { inbox: Inbox; example?: string }) {
  const [instruction, setInstruction] = useState("Summarise this in one sentence");
  const [content, setContent] = useState(example);
  const test = useChange<void, InboxTest>({
    run: () => post<InboxTest>(`/inboxes/${inbox.id}/test`, { instruction, ...(content ? { content } : {}) }),
    touches: [["messages"], ["answered"]],
  });
  const fault = faultOf(test.error);
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Card title="A test mail">
        <Form change={test} act="Send it">
          <TextField
            label="What it should do"
            fault={fault("instruction")}
            maxLength={10_000}
            value={instruction}
            onChange={setInstruction}
          />
          <Field
            label="The mail it works on"
            hint="May stay empty, if the instruction says it all."
            fault={fault("content")}
          >
            <TextArea
              rows={8}
              value={content}
              maxLength={100_000}
              onChange={(event) => setContent(event.target.value)}
            />
          </Field>
        </Form>
      </Card>
      <Card title="The answer">
        <div role="status">
          {test.isPending && (
            <p className="flex items-center gap-2 text-soft">
              <Spinner /> Working on it…
            </p>
          )}
          {!test.isPending && !test.data && <p className="text-soft">It will show here.</p>}
          {!test.isPending && test.data && <Outcome result={test.data} />}
        </div>
      </Card>
    </div>
  );
}

function Outcome({ result }: { result: InboxTest }) {
  return (
    <div className="grid gap-3">
      {result.error && <Notice look="bad">{result.error}</Notice>}
      {result.status === "processing" && (
        <Notice>It is still being worked on. The answer will show in the activity.</Notice>
      )}
      {result.result && <ModelText text={result.result} />}
      <Files files={result.attachments} />
      <p className="text-sm text-soft">
        <MailWords result={result} />
      </p>
      <Steps steps={result.steps.map(namedForReader)} />
      <Link
        to="/messages/$message_id"
        params={{ message_id: result.message_id }}
        className="justify-self-start text-sm text-accent underline"
      >
        How this came about
      </Link>
    </div>
  );
}

/** Names the file of a test as its field is named: whoever filled in the field knows of no file. */
function namedForReader(step: InboxTest["steps"][number]): InboxTest["steps"][number] {
  const is_text = step.type === "extract" && step.name === "content.txt";
  return is_text ? { ...step, name: "Read from the mail" } : step;
}

/** The words for what became of the mail with the answer. */
function MailWords({ result: { reply, reply_status } }: { result: InboxTest }) {
  const { data: server } = useQuery(serverFacts);
  switch (reply_status) {
    case "none":
      return "No mail is sent with it.";
    case "queued":
    case "deferred":
      return `The mail to ${reply.to} is on its way.`;
    case "sent":
      if (server?.outbound_mode === "capture") return <KeptHere to={reply.to} />;
      return server && `Also mailed to ${reply.to}.`;
    default:
      return `The mail to ${reply.to} did not arrive: it was ${reply_status}.`;
  }
}

/** The words for an answer in capture mode. */
export function keptWords(to: string): string {
  return `The mail to ${to} ${KEPT_HERE}`;
}

function KeptHere({ to }: { to: string }) {
  const { is_admin } = useMe();
  return (
    <>
      {keptWords(to)}{" "}
      {is_admin && (
        <Link to="/server" hash="mail" className="text-accent underline">
          See what it keeps
        </Link>
      )}
    </>
  );
}
