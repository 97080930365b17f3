import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { connectionList, domainList, inboxList } from "../../api/lists.ts";
import { serverFacts } from "../../api/session.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { ModelSelect } from "./model-select.tsx";
import { usualModel } from "./models.ts";

export function NewInbox({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [label, setLabel] = useState("");
  const [model, setModel] = useState<string>();
  const [domain, setDomain] = useState("");
  const [name, setName] = useState<string>();
  const { data: connections = [] } = useQuery(connectionList);
  const { data: domains = [] } = useQuery(domainList);
  const { data: inboxes = [] } = useQuery(inboxList);
  const chosen = model ?? usualModel(connections, inboxes);
  const create = useChange<void, Inbox>({
    run: () =>
      post<Inbox>("/inboxes", {
        label,
        ...(chosen ? { default_connection_id: chosen } : {}),
        ...(domain ? { domain_id: domain } : {}),
        ...(name === undefined ? {} : { local_part: name }),
      }),
    touches: [inboxList.queryKey],
    done: ({ id }) => void navigate({ to: "/inboxes/$inbox_id", params: { inbox_id: id } }),
  });
  const ready = domains.filter(({ status }) => status === "active");
  const { data: server } = useQuery(serverFacts);
  const may_choose = domain !== "" || server?.chosen_addresses === "everywhere";
  const at = ready.find(({ id }) => id === domain)?.domain ?? server?.domain ?? "";
  const fault = faultOf(create.error);
  return (
    <Dialog title="New inbox" onClose={onClose}>
      <Form change={create} act="Make the inbox" onCancel={onClose}>
        <TextField
          label="Name"
          hint="What it is for, such as “Invoices”. It becomes part of the address."
          fault={fault("label")}
          autoFocus
          required
          value={label}
          onChange={setLabel}
        />
        <ModelSelect
          hint="Who reads the mail and writes the answer."
          fault={fault("default_connection_id")}
          value={chosen}
          onChange={setModel}
        />
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
        {may_choose && (
          <Checkbox
            label="Choose the whole address"
            checked={name !== undefined}
            onChange={(event) => setName(event.target.checked ? "" : undefined)}
          />
        )}
        {may_choose && name !== undefined && (
          <TextField
            label="Address"
            hint={`What stands before @${at}, such as “billing”. Anybody can guess it, so expect mail from strangers.`}
            fault={fault("local_part")}
            required
            maxLength={40}
            autoCapitalize="none"
            value={name}
            onChange={setName}
          />
        )}
      </Form>
    </Dialog>
  );
}
