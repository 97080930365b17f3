import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import { connectionList, contextList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Checkbox, Field, Select, Toggle } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

export function InboxSettings({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const [label, setLabel] = useState(inbox.label);
  const [model, setModel] = useState(inbox.default_connection_id ?? "");
  const [days, setDays] = useState(inbox.retention_days?.toString() ?? "");
  const { data: connections = [] } = useQuery(connectionList);
  const save = (): void =>
    change.mutate({
      label,
      default_connection_id: model || null,
      retention_days: days === "" ? null : Number(days),
    });
  const fault = faultOf(change.error);
  return (
    <div className="grid gap-4">
      <Card>
        <Form change={{ ...change, mutate: save }} act="Save">
          <TextField label="Name" fault={fault("label")} maxLength={100} value={label} onChange={setLabel} />
          <Field
            label="Model"
            hint="Who reads the mail and writes the answer."
            fault={fault("default_connection_id")}
          >
            <Select value={model} onChange={(event) => setModel(event.target.value)}>
              <option value="">The server’s own, if it has one</option>
              {connections
                .filter(({ category }) => category === "llm")
                .map(({ id, label: name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
            </Select>
          </Field>
          <TextField
            label="Days to keep content"
            hint="Empty: as long as your plan keeps it."
            fault={fault("retention_days")}
            type="number"
            min={1}
            max={3650}
            value={days}
            onChange={setDays}
          />
        </Form>
      </Card>
      <Card>
        <Toggle
          label="Answer by mail"
          hint="Off: mail is still worked on, and the result shows in the activity."
          checked={inbox.reply_enabled}
          onChange={(reply_enabled) => change.mutate({ reply_enabled })}
        />
      </Card>
      <Contexts inbox={inbox} />
    </div>
  );
}

function Contexts({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const { data: contexts = [] } = useQuery(contextList);
  const chosen = inbox.context_ids;
  const toggle = (id: string, on: boolean): void =>
    change.mutate({
      context_ids: on ? [...(chosen ?? []), id] : (chosen ?? []).filter((other) => other !== id),
    });
  return (
    <Card title="Contexts">
      <div className="grid gap-3">
        <Toggle
          label="All of mine"
          hint="Off: only the ones you choose, and only those are used for mail from strangers."
          checked={chosen === null}
          onChange={(all) => change.mutate({ context_ids: all ? null : [] })}
        />
        {chosen !== null &&
          contexts.map(({ id, title }) => (
            <Checkbox
              key={id}
              label={title}
              checked={chosen.includes(id)}
              onChange={(event) => toggle(id, event.target.checked)}
            />
          ))}
        <Fault error={change.error} />
      </div>
    </Card>
  );
}
