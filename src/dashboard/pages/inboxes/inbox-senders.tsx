import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Field, TextArea, Toggle } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Unsaved } from "../../ui/unsaved.tsx";
import { sendersIn, wholeProviders } from "./senders.ts";
import { useInboxChange } from "./use-inbox-change.ts";

export function InboxSenders({ inbox }: { inbox: Inbox }) {
  const [draft, setDraft] = useState<string>();
  const senders = draft ?? inbox.allowlist_senders.join("\n");
  const change = useInboxChange(inbox);
  const policy = useInboxChange(inbox);
  const [asked, setAsked] = useState(false);
  const entries = sendersIn(senders);
  const providers = wholeProviders(entries);
  const is_first = inbox.allowlist_senders.length === 0 && entries.length > 0;
  const close = (): void => setAsked(false);
  const save = (): void =>
    change.mutate({ allowlist_senders: entries }, { onSuccess: () => setDraft(undefined), onSettled: close });
  return (
    <div className="grid gap-4">
      <Unsaved changed={draft !== undefined} />
      <Card title="Senders">
        <Form
          change={{
            ...change,
            mutate: () => (is_first ? setAsked(true) : save()),
          }}
          act="Save"
        >
          <Field
            label="People who may write and instruct"
            hint="One a line: ada@example.com, @example.com for a whole domain, @*.example.com with its subdomains. You yourself always may."
            fault={faultOf(change.error)("allowlist_senders")}
          >
            <TextArea rows={6} value={senders} onChange={(event) => setDraft(event.target.value)} />
          </Field>
          {providers.length > 0 && (
            <p className="text-sm font-medium text-warn">
              Anybody can have an address at {providers.join(" or ")}: all of them may then write here, and
              their words are instructions. List the addresses of people instead.
            </p>
          )}
          <p className="text-sm text-soft">
            {senders.trim() === ""
              ? "The list is empty: anybody may write, but what strangers write is only content. It never commands your tools."
              : "Mail from anybody else is refused, and the sender’s server tells them."}
          </p>
        </Form>
        {asked && (
          <Confirm
            title="Let only these people write?"
            act="Let only them write"
            cancel="Leave it as it is"
            busy={change.isPending}
            error={change.error}
            onConfirm={save}
            onClose={close}
          >
            <p>Until now anybody may write to this inbox. From now on mail from everybody else is refused.</p>
            <p>The words of those on the list are instructions, as yours are.</p>
          </Confirm>
        )}
      </Card>
      <Card title="Mail that is usually left alone">
        <div className="grid gap-4">
          <Toggle
            label="Work on mail whose sender proves nothing"
            hint="Anybody can write any name into such mail, and spam is often like that: each would cost a run. Off, it is refused, which its sender’s server tells them, and listed in the activity."
            checked={
              inbox.inbound_policy.process_unauthenticated || inbox.inbound_policy.reply_to_unauthenticated
            }
            disabled={inbox.inbound_policy.reply_to_unauthenticated}
            onChange={(on) => policy.mutate({ inbound_policy: { process_unauthenticated: on } })}
          />
          <Toggle
            label="Answer strangers whose address cannot be verified"
            hint="Off is safer: a forged address would make your server write to somebody who never asked."
            checked={inbox.inbound_policy.reply_to_unauthenticated}
            onChange={(on) => policy.mutate({ inbound_policy: { reply_to_unauthenticated: on } })}
          />
          <Toggle
            label="Work on newsletters and list mail"
            hint="They are read, for a digest say, and never answered."
            checked={inbox.inbound_policy.process_bulk}
            onChange={(on) => policy.mutate({ inbound_policy: { process_bulk: on } })}
          />
          <Fault error={policy.error} />
        </div>
      </Card>
    </div>
  );
}
