import type { ReactNode } from "react";
import type { FieldFault } from "../../api/client.ts";
import { Field, Select } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";

interface ModelFieldProps {
  model: string;
  /** The models that a test has found; without any, the name is typed. */
  models: string[];
  /** Set where there is no usual model. */
  required: boolean;
  hint: ReactNode;
  fault: FieldFault | undefined;
  onChange: (model: string) => void;
}

export function ModelField({ model, models, required, hint, fault, onChange }: ModelFieldProps) {
  if (models.length === 0)
    return (
      <TextField label="Model" hint={hint} fault={fault} maxLength={200} value={model} onChange={onChange} />
    );
  const missing = model !== "" && !models.includes(model);
  return (
    <Field label="Model" fault={fault}>
      <Select value={model} required={required} onChange={(event) => onChange(event.target.value)}>
        <option value="">{required ? "Choose one" : "The usual one of this provider"}</option>
        {missing && <option value={model}>{model} (not in its list)</option>}
        {models.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Select>
    </Field>
  );
}
