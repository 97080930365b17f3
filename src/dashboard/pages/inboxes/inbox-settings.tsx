import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import type { Inbox } from "../../api/shapes.ts";
import { inboxList } from "../../api/lists.ts";
import { Budget } from "../../ui/budget.tsx";
import { Field, Select, TextArea, Toggle } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Unsaved } from "../../ui/unsaved.tsx";
import { InboxContexts } from "./inbox-contexts.tsx";
import { InboxDefault } from "./inbox-default.tsx";
import { ModelSelect } from "./model-select.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

/** What is typed and not saved. */
interface DraftProps<Draft> {
  inbox: Inbox;
  draft: Draft;
  setDraft: (draft: Draft) => void;
}

export function InboxSettings({ inbox }: { inbox: Inbox }) {
  const reply = useInboxChange(inbox);
  const [general, setGeneral] = useState<GeneralDraft>();
  const [standing, setStanding] = useState<string>();
  return (
    <div className="grid gap-4">
      <Unsaved changed={general !== undefined || standing !== undefined} />
      <Card title="In general">
        <General inbox={inbox} draft={general} setDraft={setGeneral} />
      </Card>
      <Card title="Mail without words">
        <Standing inbox={inbox} draft={standing} setDraft={setStanding} />
      </Card>
      <Card title="Answers">
        <div className="grid gap-3">
          <Toggle
            label="Answer by mail"
            hint="Off: mail is still worked on, and the result shows in the activity."
            checked={inbox.reply_enabled}
            disabled={reply.isPending}
            onChange={(reply_enabled) => reply.mutate({ reply_enabled })}
          />
          <Fault error={reply.error} />
        </div>
      </Card>
      <InboxContexts inbox={inbox} />
      <InboxDefault inbox={inbox} />
      <Budget
        what="What models may cost for this inbox"
        path={`/inboxes/${inbox.id}`}
        budget={inbox.monthly_budget}
        touches={[inboxList.queryKey]}
      />
      <Pause inbox={inbox} />
    </div>
  );
}

/** The default instruction, for mail whose own words ask for nothing. */
function Standing({ inbox, draft, setDraft }: DraftProps<string | undefined>) {
  const change = useInboxChange(inbox);
  const text = draft ?? inbox.default_instruction ?? "";
  const save = (): void =>
    change.mutate({ default_instruction: text.trim() || null }, { onSuccess: () => setDraft(undefined) });
  return (
    <Form change={{ ...change, mutate: save }} act="Save">
      <Field
        label="What should be done with mail that says nothing itself?"
        hint="Such as “Summarise it in three points”, for what you only forward. The same is done with all mail from strangers, whose own words never count as orders; it works without tools and commands, and they may see it in their answer. Left empty, the mail is answered briefly, or summed up."
        fault={faultOf(change.error)("default_instruction")}
      >
        <TextArea
          rows={3}
          maxLength={10_000}
          value={text}
          onChange={(event) => setDraft(event.target.value)}
        />
      </Field>
    </Form>
  );
}

const PAUSES = [
  { paused: null, label: "No: it works" },
  { paused: "keep", label: "Yes: take new mail, and let it wait here" },
  { paused: "refuse", label: "Yes: ask whoever writes to try again later" },
] as const;

function Pause({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  return (
    <Card title="Pause">
      <div className="grid max-w-xl gap-3">
        <Field
          label="Is this inbox paused?"
          hint="While it is, calls are refused and nothing new is begun. What is under way goes on."
        >
          <Select
            value={inbox.paused ?? ""}
            disabled={change.isPending}
            onChange={(event) =>
              change.mutate({
                paused: PAUSES.find(({ paused }) => paused === event.target.value)?.paused ?? null,
              })
            }
          >
            {PAUSES.map(({ paused, label }) => (
              <option key={label} value={paused ?? ""}>
                {label}
              </option>
            ))}
          </Select>
        </Field>
        <ul className="list-disc pl-5 text-sm text-soft">
          <li>
            Mail that waits is worked on in its order afterwards, unless it is older by then than this inbox
            keeps messages.
          </li>
          <li>
            A server that is asked to try again does so for some days. Then it gives up, and tells the sender.
          </li>
        </ul>
        <Fault error={change.error} />
      </div>
    </Card>
  );
}

interface GeneralDraft {
  label?: string;
  model?: string;
  days?: string;
}

/** The general settings. Fields that are not edited follow the server, and are not sent: another tab may have changed them. */
function General({ inbox, draft, setDraft }: DraftProps<GeneralDraft | undefined>) {
  const change = useInboxChange(inbox);
  const {
    label = inbox.label,
    model = inbox.default_connection_id ?? "",
    days = inbox.retention_days?.toString() ?? "",
  } = draft ?? {};
  const save = (): void =>
    change.mutate(
      {
        ...(draft?.label === undefined ? {} : { label }),
        ...(draft?.model === undefined ? {} : { default_connection_id: model || null }),
        ...(draft?.days === undefined ? {} : { retention_days: days === "" ? null : Number(days) }),
      },
      { onSuccess: () => setDraft(undefined) },
    );
  const fault = faultOf(change.error);
  return (
    <Form change={{ ...change, mutate: save }} act="Save">
      <TextField
        label="Name"
        fault={fault("label")}
        maxLength={100}
        value={label}
        onChange={(text) => setDraft({ ...draft, label: text })}
      />
      <ModelSelect
        hint="Who reads the mail and writes the answer."
        fault={fault("default_connection_id")}
        value={model}
        onChange={(id) => setDraft({ ...draft, model: id })}
      />
      <TextField
        label="Days to keep content"
        hint="Left empty: as long as the server keeps it."
        fault={fault("retention_days")}
        type="number"
        min={1}
        max={3650}
        value={days}
        onChange={(text) => setDraft({ ...draft, days: text })}
      />
    </Form>
  );
}
