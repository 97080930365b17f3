import type { faultOf } from "../../api/client.ts";
import type { Endpoint } from "../../api/shapes.ts";
import { Checkbox } from "../../ui/field.tsx";
import { FaultOfField } from "../../ui/form-faults.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { EVENT_WORDS } from "./words.ts";

export interface Settings {
  url: string;
  description: string;
  event_types: string[];
}

export const NEW_SETTINGS: Settings = {
  url: "https://",
  description: "",
  event_types: Object.keys(EVENT_WORDS),
};

export function settingsOf({ url, description, event_types }: Endpoint): Settings {
  return { url, description: description ?? "", event_types };
}

/** The body of a request for a new endpoint, or for a change. */
export function bodyOf({ url, description, event_types }: Settings) {
  return { url, event_types, description: description || null };
}

interface FieldsProps {
  settings: Settings;
  fault: ReturnType<typeof faultOf>;
  onChange: (settings: Settings) => void;
}

/** The fields of an endpoint: its address and the events that it gets. */
export function EndpointFields({ settings, fault, onChange }: FieldsProps) {
  const { url, description, event_types } = settings;
  const toggle = (type: string, on: boolean): void =>
    onChange({
      ...settings,
      event_types: Object.keys(EVENT_WORDS).filter((one) => (one === type ? on : event_types.includes(one))),
    });
  return (
    <>
      <TextField
        label="Address"
        hint="Where your program takes a POST."
        fault={fault("url")}
        autoFocus
        required
        type="url"
        value={url}
        onChange={(text) => onChange({ ...settings, url: text })}
      />
      <TextField
        label="What it is for"
        hint="For you alone, such as “Ticket system”."
        fault={fault("description")}
        maxLength={500}
        value={description}
        onChange={(text) => onChange({ ...settings, description: text })}
      />
      <fieldset className="grid gap-1">
        <legend className="mb-1 text-sm font-medium">Tell it when</legend>
        {Object.entries(EVENT_WORDS).map(([type, words]) => (
          <Checkbox
            key={type}
            label={words}
            checked={event_types.includes(type)}
            onChange={(event) => toggle(type, event.target.checked)}
          />
        ))}
        <FaultOfField fault={fault("event_types")} />
      </fieldset>
    </>
  );
}
