import { useQuery } from "@tanstack/react-query";
import type { FieldFault } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Context } from "../../api/shapes.ts";
import { Checkbox, Field, Select } from "../../ui/field.tsx";

interface ScopeProps {
  inbox_ids: Context["inbox_ids"];
  fault: FieldFault | undefined;
  onChange: (inbox_ids: Context["inbox_ids"]) => void;
}

/** The inboxes that a context is for. */
export function ContextScope({ inbox_ids, fault, onChange }: ScopeProps) {
  const { data: inboxes = [] } = useQuery(inboxList);
  const toggle = (id: string, on: boolean): void =>
    onChange(on ? [...(inbox_ids ?? []), id] : (inbox_ids ?? []).filter((other) => other !== id));
  return (
    <div className="grid gap-2">
      <Field
        label="For"
        hint={
          inbox_ids === null
            ? "But not for inboxes that choose their contexts themselves, and not for mail from strangers."
            : "Mail from strangers to these inboxes is answered with it too."
        }
        fault={fault}
      >
        <Select
          value={inbox_ids === null ? "every" : "these"}
          onChange={(event) => onChange(event.target.value === "every" ? null : [])}
        >
          <option value="every">Every inbox</option>
          <option value="these">These inboxes</option>
        </Select>
      </Field>
      {inbox_ids !== null && (
        <div className="max-h-60 overflow-y-auto">
          {inboxes.map(({ id, label, local_part }) => (
            <Checkbox
              key={id}
              label={label || local_part}
              checked={inbox_ids.includes(id)}
              onChange={(event) => toggle(id, event.target.checked)}
            />
          ))}
          {inboxes.length === 0 && <p className="text-sm text-soft">You have no inbox yet.</p>}
        </div>
      )}
    </div>
  );
}

/** "Every inbox", "2 inboxes". */
export function scopeWords({ inbox_ids }: Pick<Context, "inbox_ids">): string {
  if (inbox_ids === null) return "Every inbox";
  if (inbox_ids.length === 0) return "No inbox";
  return inbox_ids.length === 1 ? "1 inbox" : `${inbox_ids.length} inboxes`;
}
