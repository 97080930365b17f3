import { useState } from "react";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { faultOf, get, patch } from "../../api/client.ts";
import { session, useMe } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { Checkbox, Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Card } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";

const ZONES = Intl.supportedValuesOf("timeZone");

type Profile = Pick<Me, "name" | "timezone" | "reply_footer">;

export function Profile() {
  const me = useMe();
  const say = useToast();
  /** What was last read or saved here: what is still so is not sent, as another tab may have changed it. */
  const [known, setKnown] = useState<Profile>(me);
  const [name, setName] = useState(me.name ?? "");
  const [timezone, setTimezone] = useState(me.timezone);
  const [reply_footer, setFooter] = useState(me.reply_footer);
  const restore = useChange<{ before: Profile; made: Me }>({
    run: async ({ before, made }) => {
      refuseChanged(await get<Me>("/auth/me"), made, ["name", "timezone", "reply_footer"]);
      return patch("/auth/profile", before);
    },
    touches: [session.queryKey],
    done: (_me, { before }) => {
      setKnown(before);
      setName(before.name ?? "");
      setTimezone(before.timezone);
      setFooter(before.reply_footer);
      say("It is as it was.");
    },
  });
  const before = { name: me.name, timezone: me.timezone, reply_footer: me.reply_footer };
  const save = useChange({
    run: () =>
      patch<Me>("/auth/profile", changedIn(known, { name: name.trim() || null, timezone, reply_footer })),
    touches: [session.queryKey],
    done: (made) => {
      setKnown(made);
      say("Your profile is saved.", () => restore.mutateAsync({ before, made }));
    },
  });
  const fault = faultOf(save.error);
  return (
    <Card title="Profile">
      <Form change={save} act="Save">
        <TextField
          label="Mail address"
          hint="Instructions you send from here command your inboxes. The address of an account cannot be changed."
          value={me.email}
          readOnly
        />
        <TextField
          label="Name"
          fault={fault("name")}
          maxLength={100}
          autoComplete="name"
          value={name}
          onChange={setName}
        />
        <Field
          label="Time zone"
          hint="For the times in mails to you, and for what the model takes for today."
          fault={fault("timezone")}
        >
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
      </Form>
    </Card>
  );
}

function changedIn(known: Profile, { name, timezone, reply_footer }: Profile): Partial<Profile> {
  return {
    ...(name === known.name ? {} : { name }),
    ...(timezone === known.timezone ? {} : { timezone }),
    ...(reply_footer === known.reply_footer ? {} : { reply_footer }),
  };
}
