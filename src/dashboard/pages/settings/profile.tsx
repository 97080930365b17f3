import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { ApiError, patch } from "../../api/client.ts";
import { session, useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Checkbox, Field, Input, Select } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";

const ZONES = Intl.supportedValuesOf("timeZone");

export function Profile() {
  const me = useMe();
  const say = useToast();
  const [name, setName] = useState(me.name ?? "");
  const [timezone, setTimezone] = useState(me.timezone);
  const [reply_footer, setFooter] = useState(me.reply_footer);
  const save = useChange({
    run: () => patch("/auth/profile", { ...(name ? { name } : {}), timezone, reply_footer }),
    touches: [session.queryKey],
    done: () => say("Saved."),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  const fault = (member: string) =>
    save.error instanceof ApiError ? save.error.fieldFault(member) : undefined;
  return (
    <Card title="Profile">
      <form onSubmit={submit} className="grid max-w-xl gap-4">
        <Field label="Mail address" hint="Instructions you send from here command your inboxes.">
          <Input value={me.email} readOnly />
        </Field>
        <Field label="Name" fault={fault("name")}>
          <Input
            value={name}
            maxLength={100}
            autoComplete="name"
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field label="Time zone" fault={fault("timezone")}>
          <Select value={timezone} onChange={(event) => setTimezone(event.target.value)}>
            {[...new Set(["UTC", timezone, ...ZONES])].map((zone) => (
              <option key={zone}>{zone}</option>
            ))}
          </Select>
        </Field>
        <Checkbox
          label="Answers say that an AI wrote them"
          checked={reply_footer}
          onChange={(event) => setFooter(event.target.checked)}
        />
        <Fault error={save.error} />
        <div>
          <Button look="main" type="submit" busy={save.isPending}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  );
}
