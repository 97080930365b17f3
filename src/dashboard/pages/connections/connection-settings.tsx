import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { type FieldFault, faultOf, patch } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Card } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";
import { AddressField, isProgram } from "./address-field.tsx";
import { changesOf, type Fields, fieldsOf, SpecialFields } from "./fields.tsx";
import { ModelField } from "./model-field.tsx";
import type { Provider } from "./providers.ts";

interface SettingsProps {
  connection: Connection;
  provider: Provider;
  /** The models that a test has found; none without a test. */
  models: string[];
}

/** The settings of a connection. Fields that are not edited follow the server. */
export function ConnectionSettings({ connection, provider, models }: SettingsProps) {
  const say = useToast();
  const [draft, setDraft] = useState<Partial<Fields>>({});
  const kept = fieldsOf(connection);
  const fields = { ...kept, ...draft };
  const save = useChange<void, Connection>({
    run: () => patch<Connection>(`/connections/${connection.id}`, changesOf(fields, kept, connection.config)),
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: () => {
      setDraft({});
      say("Saved.");
    },
  });
  const fault = faultOf(save.error);
  const set = (change: Partial<Fields>): void => setDraft((before) => ({ ...before, ...change }));
  const { key, category, kind } = provider;
  return (
    <Card title="Settings">
      <Form change={save} act="Save">
        <TextField
          label="Name"
          fault={fault("label")}
          maxLength={100}
          value={fields.label}
          onChange={(text) => set({ label: text })}
        />
        {connection.auth !== "oauth" && (
          <AddressField provider={provider} fields={fields} fault={fault} set={set} />
        )}
        {category === "llm" && kind !== "demo" && (
          <ModelField
            model={fields.model}
            models={models}
            required={kind === "openai_compatible"}
            hint={
              kind === "openai_compatible"
                ? "A test shows which ones there are."
                : "Left empty, the usual one. A test shows which ones there are."
            }
            fault={fault("model")}
            onChange={(text) => set({ model: text })}
          />
        )}
        {category === "llm" && (
          <FallbackField
            connection={connection}
            value={fields.fallback_connection_id}
            fault={fault("fallback_connection_id")}
            onChange={(id) => set({ fallback_connection_id: id })}
          />
        )}
        {key && !isProgram(fields) && (
          <TextField
            label="New key"
            hint={
              connection.credential_hint
                ? `The one that is kept ends in ${connection.credential_hint}. Leave this empty to keep it.`
                : key.hint
            }
            fault={fault("credential")}
            type="password"
            autoComplete="off"
            value={fields.credential}
            onChange={(text) => set({ credential: text })}
          />
        )}
        <SpecialFields provider={provider} fields={fields} fault={fault} set={set} />
      </Form>
    </Card>
  );
}

interface FallbackFieldProps {
  connection: Connection;
  value: string;
  fault: FieldFault | undefined;
  onChange: (connection_id: string) => void;
}

function FallbackField({ connection, value, fault, onChange }: FallbackFieldProps) {
  const { data: connections = [] } = useQuery(connectionList);
  const others = connections.filter(({ id, category }) => category === "llm" && id !== connection.id);
  if (others.length === 0) return null;
  return (
    <Field label="If it does not answer, ask" fault={fault}>
      <Select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">Nobody else</option>
        {others.map(({ id, label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </Select>
    </Field>
  );
}
