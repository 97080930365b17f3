import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { faultOf } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Inbox } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { FormFrame, RestOfFaults } from "../../ui/form-faults.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { ReferenceLink } from "../../ui/reference-link.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { curlOf } from "./curl.ts";
import { Attach, joined, refusalOf, useFileDrop } from "./files.tsx";
import { InstructionField } from "./instruction-field.tsx";
import { Outcome, UnderWay } from "./outcome.tsx";
import { contentTypeOf, type Input, plainBodyOf, type Run, useRun } from "./run.ts";
import { useVocabulary } from "./vocabulary.ts";

/** A form for a call: it does what a mail or a script would, and costs the same. */
export function Playground() {
  const { data: inboxes, error, refetch } = useQuery(inboxList);
  const usual = inboxes?.find(({ is_default }) => is_default);
  const { unlimited } = useMe().credits;
  return (
    <Page
      title="Playground"
      intro={`Try an instruction on a text or a file. It does what a mail to the inbox would${unlimited ? "." : ", and costs a credit if it ends well."}`}
    >
      <Fault error={error} retry={() => void refetch()} />
      {!inboxes && !error && <Loading what="your inboxes" />}
      {inboxes?.length === 0 && (
        <Empty
          title="There is no inbox yet"
          action={
            <Link to="/inboxes" className={classes(BUTTON, "bg-accent text-accent-text")}>
              Make an inbox
            </Link>
          }
        >
          An inbox says which model works and which tools it may use. Make one, then try it here.
        </Empty>
      )}
      {usual && inboxes && <Bench inboxes={inboxes} first={usual} />}
    </Page>
  );
}

function Bench({ inboxes, first }: { inboxes: Inbox[]; first: Inbox }) {
  const [given, setInput] = useState<Input>({ instruction: "", content: "", inbox_id: "", files: [] });
  const inbox = inboxes.find(({ id }) => id === given.inbox_id) ?? first;
  const input = { ...given, inbox_id: inbox.id };
  const run = useRun();
  const set = (change: Partial<Input>): void => setInput((before) => ({ ...before, ...change }));
  const drop = useFileDrop((files) => set({ files: joined(given.files, files) }));
  const place = useRef<HTMLDivElement>(null);
  const start = (): void => {
    run.start(input);
    // On a phone, the outcome is below the form.
    place.current?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div {...drop.handlers} className="grid items-start gap-4 lg:grid-cols-2">
      <div
        className={classes("min-w-0 rounded-xl", drop.over && "outline-2 outline-offset-4 outline-accent")}
      >
        <Form inboxes={inboxes} inbox={inbox} input={input} run={run} onChange={set} onStart={start} />
      </div>
      <div ref={place} className="min-w-0 lg:col-start-2 lg:row-span-2">
        <Result run={run} />
      </div>
      <Curl input={input} />
    </div>
  );
}

function Result({ run }: { run: Run }) {
  return (
    <Card title="Result">
      <div aria-live="polite" className="grid gap-4">
        {!run.running && !run.result && (
          <p className="py-8 text-center text-soft">What comes out appears here, each step as it is taken.</p>
        )}
        {run.running && <UnderWay run={run} />}
        {run.result && <Outcome result={run.result} />}
        <Fault error={run.lost} />
      </div>
    </Card>
  );
}

interface FormProps {
  inboxes: Inbox[];
  inbox: Inbox;
  input: Input;
  run: Run;
  onChange: (change: Partial<Input>) => void;
  onStart: () => void;
}

function Form({ inboxes, inbox, input, run, onChange, onStart }: FormProps) {
  const known = useVocabulary(inbox);
  const refusal = refusalOf(input.files);
  const fault = faultOf(run.refused);
  return (
    <Card>
      <FormFrame error={run.refused} onSubmit={onStart} className="grid gap-4">
        {inboxes.length > 1 && (
          <Field label="Inbox" fault={fault("inbox_id")}>
            <Select value={inbox.id} onChange={(event) => onChange({ inbox_id: event.target.value })}>
              {inboxes.map(({ id, label, address }) => (
                <option key={id} value={id}>
                  {label || address}
                </option>
              ))}
            </Select>
          </Field>
        )}
        {!inbox.routed && (
          <Notice look="warn">
            This inbox has no model yet.{" "}
            <Link to="/inboxes/$inbox_id" params={{ inbox_id: inbox.id }} className="underline">
              Choose one for it
            </Link>
          </Notice>
        )}
        <InstructionField
          value={input.instruction}
          fault={fault("instruction")}
          known={known}
          onChange={(instruction) => onChange({ instruction })}
        />
        <Field
          label="Text to work on"
          hint="It is read, and nothing it says is obeyed."
          fault={fault("content")}
        >
          <TextArea
            rows={8}
            value={input.content}
            onChange={(event) => onChange({ content: event.target.value })}
          />
        </Field>
        <Attach files={input.files} fault={fault("attachments")} onFiles={(files) => onChange({ files })} />
        <RestOfFaults />
        <div>
          <Button look="main" type="submit" busy={run.running} disabled={refusal !== undefined}>
            Run it
          </Button>
        </div>
      </FormFrame>
    </Card>
  );
}

/** The same call for a script. */
function Curl({ input }: { input: Input }) {
  const text = curlOf({
    url: `${location.origin}/v1/messages`,
    body: plainBodyOf({ ...input, instruction: input.instruction || "Summarise this" }),
    files: input.files.map((file) => ({ filename: file.name, content_type: contentTypeOf(file) })),
  });
  return (
    <details className="min-w-0 rounded-xl border border-line bg-card">
      <summary className="px-4 py-3 font-medium">The same from a terminal</summary>
      <div className="grid gap-3 border-t border-line p-4">
        <p className="text-sm text-soft">
          Put an API key into the variable KEY; you make one in the{" "}
          <Link to="/settings" className="text-accent underline">
            settings
          </Link>
          , and all calls are in <ReferenceLink />.
          {input.files.length > 0 && " Run it in the folder where the files are."}
        </p>
        <div className="flex items-start gap-2">
          <Scroll label="The command" className="max-h-96 min-w-0 flex-1 rounded-md bg-back p-3">
            <pre className="font-mono text-sm">{text}</pre>
          </Scroll>
          <CopyButton text={text} label="Copy the command" />
        </div>
      </div>
    </details>
  );
}
