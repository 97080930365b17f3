import { Trash2 } from "lucide-react";
import { useState } from "react";
import type { faultOf } from "../../api/client.ts";
import { IconButton } from "../../ui/button.tsx";
import { Checkbox, Field, Select, TextArea } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import {
  AUTHORITY_WORDS,
  type Condition,
  DAY_WORDS,
  type Field as FieldName,
  FIELDS,
  clockWords,
  FILE_WORDS,
  KB,
} from "./rule-words.ts";

export type Fault = ReturnType<ReturnType<typeof faultOf>>;

interface ConditionProps {
  condition: Condition;
  fault: Fault;
  onChange: (condition: Condition) => void;
  onDelete: () => void;
}

const EMPTY: Record<FieldName, Omit<Condition, "field">> = {
  sender: { is: [] },
  subject: { contains: [] },
  text: { contains: [] },
  files: { is: ["any"] },
  tag: { is: [] },
  authority: { is: ["stranger", "unauthenticated"] },
  header: { name: "List-Id", contains: [] },
  size: { over_bytes: 5_120 * KB },
  time: { from: "18:00", to: "08:00" },
};

/** One condition: what is looked at, what it must hold, and whether that is turned round. */
export function ConditionFields({ condition, fault, onChange, onDelete }: ConditionProps) {
  const { field } = condition;
  return (
    <div className="grid gap-2 rounded-lg border border-line p-3">
      <div className="flex items-end gap-2">
        <div className="grow">
          <Field label="What">
            <Select
              value={field}
              onChange={(event) => {
                const next = event.target.value as FieldName;
                onChange({ field: next, ...EMPTY[next] });
              }}
            >
              {Object.entries(FIELDS).map(([name, { label }]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </Select>
          </Field>
        </div>
        <IconButton label="Take the condition out" onClick={onDelete}>
          <Trash2 />
        </IconButton>
      </div>
      <ValueFields condition={condition} fault={fault} onChange={onChange} />
      <Checkbox
        label="It must not be so"
        checked={condition.not === true}
        onChange={(event) => onChange({ ...condition, not: event.target.checked })}
      />
    </div>
  );
}

function ValueFields({ condition, fault, onChange }: Omit<ConditionProps, "onDelete">) {
  const { field } = condition;
  const { hint } = FIELDS[field];
  if (field === "files")
    return (
      <Choices
        words={FILE_WORDS}
        chosen={condition.is ?? []}
        onChange={(is) => onChange({ ...condition, is })}
      />
    );
  if (field === "authority")
    return (
      <Choices
        words={AUTHORITY_WORDS}
        chosen={condition.is ?? []}
        onChange={(is) => onChange({ ...condition, is })}
      />
    );
  if (field === "size") return <SizeFields condition={condition} fault={fault} onChange={onChange} />;
  if (field === "time") return <TimeFields condition={condition} fault={fault} onChange={onChange} />;
  const lists = field === "sender" || field === "tag" ? "is" : "contains";
  return (
    <>
      {field === "header" && (
        <TextField
          label="Name of the field"
          value={condition.name ?? ""}
          onChange={(name) => onChange({ ...condition, name })}
        />
      )}
      <Lines
        label={lists === "is" ? "One of" : "Has one of"}
        hint={hint}
        fault={fault}
        lines={condition[lists] ?? []}
        onChange={(lines) => onChange({ ...condition, [lists]: lines })}
      />
    </>
  );
}

/** A list as text, one entry a line; what is being typed keeps its empty lines. */
export function Lines({
  label,
  hint,
  fault,
  lines,
  onChange,
}: {
  label: string;
  hint: string;
  fault: Fault;
  lines: string[];
  onChange: (lines: string[]) => void;
}) {
  const [text, setText] = useState(lines.join("\n"));
  return (
    <Field label={label} hint={hint} fault={fault}>
      <TextArea
        rows={2}
        className="min-h-16"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          onChange(
            event.target.value
              .split("\n")
              .map((line) => line.trim())
              .filter(Boolean),
          );
        }}
      />
    </Field>
  );
}

function Choices({
  words,
  chosen,
  onChange,
}: {
  words: Record<string, string>;
  chosen: string[];
  onChange: (chosen: string[]) => void;
}) {
  return (
    <div className="flex flex-wrap gap-x-4">
      {Object.entries(words).map(([name, label]) => (
        <Checkbox
          key={name}
          label={label}
          checked={chosen.includes(name)}
          onChange={(event) =>
            onChange(event.target.checked ? [...chosen, name] : chosen.filter((other) => other !== name))
          }
        />
      ))}
    </div>
  );
}

function SizeFields({ condition, fault, onChange }: Omit<ConditionProps, "onDelete">) {
  const kb = (bytes: number | undefined): string =>
    bytes === undefined ? "" : String(Math.round(bytes / KB));
  const set = (name: "over_bytes" | "under_bytes", text: string): void => {
    const { [name]: _, ...rest } = condition;
    onChange(text === "" ? rest : { ...rest, [name]: Number(text) * KB });
  };
  return (
    <div className="grid grid-cols-2 gap-2">
      <TextField
        label="Larger than (KB)"
        type="number"
        min={0}
        fault={fault}
        value={kb(condition.over_bytes)}
        onChange={(text) => set("over_bytes", text)}
      />
      <TextField
        label="Smaller than (KB)"
        type="number"
        min={1}
        value={kb(condition.under_bytes)}
        onChange={(text) => set("under_bytes", text)}
      />
    </div>
  );
}

function TimeFields({ condition, fault, onChange }: Omit<ConditionProps, "onDelete">) {
  const set = (name: "from" | "to", text: string): void => {
    const { [name]: _, ...rest } = condition;
    onChange(text === "" ? rest : { ...rest, [name]: text });
  };
  return (
    <>
      <div className="grid grid-cols-2 gap-2">
        <TextField
          label="From"
          type="time"
          fault={fault}
          value={condition.from ?? ""}
          onChange={(text) => set("from", text)}
        />
        <TextField
          label="Until"
          type="time"
          value={condition.to ?? ""}
          onChange={(text) => set("to", text)}
        />
      </div>
      <Choices
        words={DAY_WORDS}
        chosen={condition.days ?? []}
        onChange={(days) => onChange({ ...condition, days: days as NonNullable<Condition["days"]> })}
      />
      <p className="text-sm text-soft">No day ticked: every day. {clockWords(condition.zone)}</p>
    </>
  );
}
