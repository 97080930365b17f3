import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { ApiError, post } from "../../api/client.ts";
import { connectionList, domainList, inboxList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, Select } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";

export function NewInbox({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [label, setLabel] = useState("");
  const [model, setModel] = useState("");
  const [domain, setDomain] = useState("");
  const { data: connections = [] } = useQuery(connectionList);
  const { data: domains = [] } = useQuery(domainList);
  const create = useChange<void, Inbox>({
    run: () =>
      post<Inbox>("/inboxes", {
        label,
        ...(model ? { default_connection_id: model } : {}),
        ...(domain ? { domain_id: domain } : {}),
      }),
    touches: [inboxList.queryKey],
    done: ({ id }) => void navigate({ to: "/inboxes/$inbox_id", params: { inbox_id: id } }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    create.mutate();
  };
  const models = connections.filter(({ category }) => category === "llm");
  const ready = domains.filter(({ status }) => status === "active");
  const fault = (name: string) =>
    create.error instanceof ApiError ? create.error.fieldFault(name) : undefined;
  return (
    <Dialog title="New inbox" onClose={onClose}>
      <form onSubmit={submit} className="grid gap-4">
        <Field
          label="Name"
          hint="What it is for, such as “Invoices”. It becomes part of the address."
          fault={fault("label")}
        >
          <Input autoFocus value={label} maxLength={100} onChange={(event) => setLabel(event.target.value)} />
        </Field>
        {models.length > 0 && (
          <Field label="Model" fault={fault("default_connection_id")}>
            <Select value={model} onChange={(event) => setModel(event.target.value)}>
              <option value="">The server’s own, if it has one</option>
              {models.map(({ id, label: name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </Select>
          </Field>
        )}
        {ready.length > 0 && (
          <Field label="Domain" fault={fault("domain_id")}>
            <Select value={domain} onChange={(event) => setDomain(event.target.value)}>
              <option value="">The server’s own</option>
              {ready.map(({ id, domain: name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </Select>
          </Field>
        )}
        <Fault error={create.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" busy={create.isPending}>
            Make the inbox
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
