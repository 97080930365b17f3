import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ApiError } from "../../api/client.ts";
import { connectionList, contextList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Checkbox, Field, Input, Select, Toggle } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

export function InboxSettings({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const [label, setLabel] = useState(inbox.label);
  const [model, setModel] = useState(inbox.default_connection_id ?? "");
  const [days, setDays] = useState(inbox.retention_days?.toString() ?? "");
  const { data: connections = [] } = useQuery(connectionList);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate({
      label,
      default_connection_id: model || null,
      retention_days: days === "" ? null : Number(days),
    });
  };
  const fault = (name: string) =>
    change.error instanceof ApiError ? change.error.fieldFault(name) : undefined;
  return (
    <div className="grid gap-4">
      <Card>
        <form onSubmit={submit} className="grid max-w-xl gap-4">
          <Field label="Name" fault={fault("label")}>
            <Input value={label} maxLength={100} onChange={(event) => setLabel(event.target.value)} />
          </Field>
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
          <Field
            label="Days to keep content"
            hint="Empty: as long as your plan keeps it."
            fault={fault("retention_days")}
          >
            <Input
              type="number"
              min={1}
              max={3650}
              value={days}
              onChange={(event) => setDays(event.target.value)}
            />
          </Field>
          <Fault error={change.error} />
          <div>
            <Button look="main" type="submit" busy={change.isPending}>
              Save
            </Button>
          </div>
        </form>
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
