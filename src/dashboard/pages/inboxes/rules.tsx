import { ArrowDown, ArrowUp, Pencil, Plus, Trash2 } from "lucide-react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { inboxList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Toggle } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card, Empty } from "../../ui/page.tsx";
import { RuleEditor } from "./rule-editor.tsx";
import { type Rule, ruleWords } from "./rule-words.ts";
import { TryRules } from "./try-rules.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

/** The rule in the window, and the rules among which it was opened. */
interface Edited {
  /** Null for a new one. */
  name: string | null;
  rules_version: string;
}

interface Saving {
  version?: string;
  done?: () => void;
}

/** The rules of an inbox, in their order: each can be switched off, moved, changed and tried. */
export function InboxRules({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const { rules } = inbox;
  const queries = useQueryClient();
  const [edited, setEdited] = useState<Edited>();
  const save = (next: Rule[], { version = inbox.rules_version, done }: Saving = {}): void =>
    change.mutate(
      { rules: next, rules_version: version },
      {
        ...(done ? { onSuccess: done } : {}),
        // Another tab may have changed them: what is there now is shown, and what was typed stays.
        onError: () => void queries.invalidateQueries({ queryKey: inboxList.queryKey }),
      },
    );
  const edit = (name: string | null): void => setEdited({ name, rules_version: inbox.rules_version });
  const close = (): void => {
    change.reset();
    setEdited(undefined);
  };
  const known = rules.findIndex(({ name }) => name === edited?.name);
  const place = known === -1 ? rules.length : known;
  return (
    <div className="grid gap-4">
      <Card
        title="Rules"
        actions={
          <Button icon={<Plus />} onClick={() => edit(null)}>
            Add a rule
          </Button>
        }
      >
        <div className="grid gap-3">
          {rules.length === 0 && (
            <Empty title="No rule yet">
              With rules you leave mail out, keep it for later, give it an instruction of its own or another
              model. They cost nothing until they ask the model something.
            </Empty>
          )}
          {rules.length > 1 && (
            <p className="text-sm text-soft">
              They are looked at from the top. What several say is put together; of one thing the first says
              it.
            </p>
          )}
          <ol className="grid gap-3">
            {rules.map((rule, index) => (
              <RuleRow
                key={rule.name}
                rule={rule}
                place={{ index, last: rules.length - 1 }}
                busy={change.isPending}
                onEdit={() => edit(rule.name)}
                onSwitch={(enabled) => save(rules.with(index, { ...rule, enabled }))}
                onMove={(to) => save(rules.toSpliced(index, 1).toSpliced(to, 0, rule))}
                onDelete={() => save(rules.toSpliced(index, 1))}
              />
            ))}
          </ol>
          {edited === undefined && <Fault error={change.error} />}
        </div>
      </Card>
      <Card title="What they would have done">
        <TryRules inbox={inbox} rules={rules} />
      </Card>
      {edited !== undefined && (
        <Dialog title={edited.name === null ? "A new rule" : "Change the rule"} onClose={close}>
          <RuleEditor
            inbox={inbox}
            index={place}
            change={change}
            onSave={(rule) =>
              save(rules.toSpliced(place, 1, rule), { version: edited.rules_version, done: close })
            }
            onKeep={(rule) => save(rules.toSpliced(place, 1, rule), { done: close })}
            onCancel={close}
          />
        </Dialog>
      )}
    </div>
  );
}

interface RuleRowProps {
  rule: Rule;
  place: { index: number; last: number };
  busy: boolean;
  onEdit: () => void;
  onSwitch: (on: boolean) => void;
  onMove: (to: number) => void;
  onDelete: () => void;
}

function RuleRow({ rule, place: { index, last }, busy, onEdit, onSwitch, onMove, onDelete }: RuleRowProps) {
  const { name } = rule;
  return (
    <li className="grid gap-2 rounded-lg border border-line p-3">
      <Toggle
        label={name}
        hint={ruleWords(rule)}
        checked={rule.enabled !== false}
        disabled={busy}
        onChange={onSwitch}
      />
      <div className="flex flex-wrap justify-end gap-1">
        <IconButton
          label={`Move “${name}” up`}
          disabled={index === 0 || busy}
          onClick={() => onMove(index - 1)}
        >
          <ArrowUp />
        </IconButton>
        <IconButton
          label={`Move “${name}” down`}
          disabled={index === last || busy}
          onClick={() => onMove(index + 1)}
        >
          <ArrowDown />
        </IconButton>
        <IconButton label={`Change “${name}”`} disabled={busy} onClick={onEdit}>
          <Pencil />
        </IconButton>
        <IconButton label={`Delete “${name}”`} disabled={busy} onClick={onDelete}>
          <Trash2 />
        </IconButton>
      </div>
    </li>
  );
}
