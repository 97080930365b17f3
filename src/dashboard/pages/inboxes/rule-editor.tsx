import { Plus } from "lucide-react";
import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Conflict } from "../../ui/conflict.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { ActionFields } from "./rule-actions.tsx";
import { ConditionFields } from "./rule-conditions.tsx";
import type { Rule } from "./rule-words.ts";
import { TryRules } from "./try-rules.tsx";

const NEW_RULE: Rule = { name: "", when: [{ field: "sender", is: [] }], do: {} };

interface RuleEditorProps {
  inbox: Inbox;
  /** The place of the rule in the list; behind the last one for a new rule. */
  index: number;
  change: { isPending: boolean; error: unknown };
  onSave: (rule: Rule) => void;
  /** Saves it into the rules as they are now. */
  onKeep: (rule: Rule) => void;
  onCancel: () => void;
}

/** A rule in a window: what it is called, when it holds, and what it does. */
export function RuleEditor({ inbox, index, change, onSave, onKeep, onCancel }: RuleEditorProps) {
  const there = inbox.rules[index];
  const [rule, setRule] = useState<Rule>(there ?? NEW_RULE);
  const fault = faultOf(change.error);
  const path = `rules.${index}`;
  const set = (part: Partial<Rule>): void => setRule({ ...rule, ...part });
  const conditions = rule.when;
  return (
    <Form
      change={{ ...change, mutate: () => onSave(rule) }}
      act="Save the rule"
      onCancel={onCancel}
      mend={
        <Conflict error={change.error} busy={change.isPending} onKeep={() => onKeep(rule)}>
          What you wrote is still here. You can also keep yours: among the rules as they are now it{" "}
          {there === undefined ? "becomes the last one" : `takes the place of “${there.name}”`}.
        </Conflict>
      }
    >
      <TextField
        label="Name"
        required
        maxLength={80}
        value={rule.name}
        fault={fault(`${path}.name`)}
        onChange={(name) => set({ name })}
      />
      <fieldset className="grid gap-3">
        <legend className="font-semibold">When</legend>
        {conditions.length === 0 && <p className="text-sm text-soft">For every message.</p>}
        {conditions.length > 1 && (
          <Field label="How many of these must be so?">
            <Select
              value={rule.match ?? "all"}
              onChange={(event) => set({ match: event.target.value === "any" ? "any" : "all" })}
            >
              <option value="all">All of them</option>
              <option value="any">Any one of them</option>
            </Select>
          </Field>
        )}
        {conditions.map((condition, at) => (
          <ConditionFields
            // oxlint-disable-next-line react/no-array-index-key -- rows have no names, and begin anew where one is taken out
            key={`${at} of ${conditions.length}`}
            condition={condition}
            fault={fault(`${path}.when.${at}`)}
            onChange={(next) => set({ when: conditions.with(at, next) })}
            onDelete={() => set({ when: conditions.toSpliced(at, 1) })}
          />
        ))}
        <div>
          <Button
            icon={<Plus />}
            onClick={() => set({ when: [...conditions, { field: "subject", contains: [] }] })}
          >
            Add a condition
          </Button>
        </div>
        <TextField
          label="And the model says yes to"
          hint="Left empty, nothing is asked. It is asked last, once for each message, and has no tools; a message that is left out afterwards costs a credit all the same."
          maxLength={500}
          value={rule.question ?? ""}
          fault={fault(`${path}.question`)}
          onChange={(question) => set({ question: question || null })}
        />
      </fieldset>
      <ActionFields
        acts={rule.do}
        fault={(name) => fault(`${path}.do.${name}`)}
        onChange={(acts) => set({ do: acts })}
      />
      <fieldset className="grid gap-3">
        <legend className="font-semibold">Before you save it</legend>
        <TryRules inbox={inbox} rules={inbox.rules.toSpliced(index, 1, rule)} />
      </fieldset>
    </Form>
  );
}
