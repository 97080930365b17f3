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

const MAX_FALLBACKS = 3;

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
          <FallbackFields
            connection={connection}
            ids={fields.fallback_connection_ids}
            fault={fault("fallback_connection_ids")}
            onChange={(ids) => set({ fallback_connection_ids: ids })}
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

interface FallbackProps {
  connection: Connection;
  ids: string[];
  fault: FieldFault | undefined;
  onChange: (ids: string[]) => void;
}

/** A choice for each fallback there is, and one more to add the next. */
function FallbackFields({ connection, ids, fault, onChange }: FallbackProps) {
  const { data: connections = [] } = useQuery(connectionList);
  const others = connections.filter(({ id, category }) => category === "llm" && id !== connection.id);
  if (others.length === 0) return null;
  const places = Math.min(ids.length + 1, MAX_FALLBACKS, others.length);
  return Array.from({ length: places }, (_, place) => (
    <Field
      // oxlint-disable-next-line react/no-array-index-key -- a place in the order is what it is for
      key={place}
      label={place === 0 ? "If it does not answer, ask" : "And then"}
      hint={place === 0 && "Nobody else is asked once a tool may have changed something."}
      fault={place === 0 ? fault : undefined}
    >
      <Select
        value={ids[place] ?? ""}
        onChange={({ target: { value } }) =>
          onChange(ids.toSpliced(place, 1, value).filter((id) => id !== ""))
        }
      >
        <option value="">Nobody else</option>
        {others
          .filter(({ id }) => id === ids[place] || !ids.includes(id))
          .map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
      </Select>
    </Field>
  ));
}
