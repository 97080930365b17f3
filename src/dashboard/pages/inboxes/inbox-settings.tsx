import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Toggle } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { InboxContexts } from "./inbox-contexts.tsx";
import { InboxDefault } from "./inbox-default.tsx";
import { ModelSelect } from "./model-select.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

export function InboxSettings({ inbox }: { inbox: Inbox }) {
  const reply = useInboxChange(inbox);
  return (
    <div className="grid gap-4">
      <Card title="In general">
        <General inbox={inbox} />
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
    </div>
  );
}

/** What is not edited shows what the server has, also when that changes. */
function General({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const [draft, setDraft] = useState<{ label?: string; model?: string; days?: string }>({});
  const {
    label = inbox.label,
    model = inbox.default_connection_id ?? "",
    days = inbox.retention_days?.toString() ?? "",
  } = draft;
  const save = (): void =>
    change.mutate(
      { label, default_connection_id: model || null, retention_days: days === "" ? null : Number(days) },
      { onSuccess: () => setDraft({}) },
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
