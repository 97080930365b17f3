import { queryOptions, useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, get, post, remove } from "../../api/client.ts";
import type { ApiKey, NewApiKey } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { ReferenceLink } from "../../ui/reference-link.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Time } from "../../ui/time.tsx";

const keyList = queryOptions({
  queryKey: ["api-keys"],
  queryFn: ({ signal }) => get<ApiKey[]>("/auth/api-keys", signal),
});

export function Keys() {
  const { data: keys, error, isPending, refetch } = useQuery(keyList);
  const { limits, features } = useMe();
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<ApiKey>();
  return (
    <Card
      title="API keys"
      actions={
        <Button icon={<Plus />} onClick={() => setMaking(true)}>
          New key
        </Button>
      }
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your keys" />}
      {keys?.length === 0 && (
        <p className="text-soft">No key yet. A script needs one; the dashboard does not.</p>
      )}
      <p className="text-sm text-soft">
        What a program can do with one, and how: <ReferenceLink />.
      </p>
      <ul className="divide-y divide-line">
        {keys?.map((key) => (
          <KeyRow
            key={key.id}
            apiKey={key}
            {...(features.includes("api_key_revocation") ? { onRevoke: () => setEnding(key) } : {})}
          />
        ))}
      </ul>
      {keys && keys.length > 0 && (
        <p className="pt-2 text-sm text-soft">
          <Allowance count={keys.length} limit={limits.api_keys} noun="keys" />
          {!features.includes("api_key_revocation") && " A new key takes the place of the one you have."}
        </p>
      )}
      {making && <NewKey replaces={keys?.length === limits.api_keys} onClose={() => setMaking(false)} />}
      {ending && <Revoke apiKey={ending} onClose={() => setEnding(undefined)} />}
    </Card>
  );
}

function KeyRow({ apiKey, onRevoke }: { apiKey: ApiKey; onRevoke?: () => void }) {
  const { name, prefix, last4, last_used_at, last_used_ip, created } = apiKey;
  return (
    <li className="flex items-center gap-x-4 py-2">
      <span className="grid min-w-0 flex-1 gap-x-4 sm:grid-cols-[minmax(0,1fr)_auto]">
        <span className="truncate font-medium">{name ?? "Unnamed"}</span>
        <code className="font-mono text-sm text-soft">
          {prefix}…{last4}
        </code>
        <span className="text-sm text-soft sm:col-span-2">
          Made <Time at={created} />
          {last_used_at === null ? (
            ", never used"
          ) : (
            <>
              , last used about <Time at={last_used_at} />
              {last_used_ip && ` from ${last_used_ip}`}
            </>
          )}
          .
        </span>
      </span>
      {onRevoke && (
        <IconButton label={`Revoke ${name ?? `${prefix}…${last4}`}`} onClick={onRevoke}>
          <Trash2 />
        </IconButton>
      )}
    </li>
  );
}

function NewKey({ replaces, onClose }: { replaces: boolean; onClose: () => void }) {
  const [name, setName] = useState("");
  const { plan } = useMe();
  const make = useChange<void, NewApiKey>({
    run: () => post<NewApiKey>("/auth/api-key", name ? { name } : {}),
    touches: [keyList.queryKey],
  });
  return (
    <Dialog title="New API key" onClose={onClose}>
      {make.data ? (
        <div className="grid gap-4">
          <Notice look="warn">Copy it now: it is shown this once, and nobody can look it up later.</Notice>
          <Copyable text={make.data.key} label="Copy the key" />
          <p className="text-sm text-soft">
            How to use it: <ReferenceLink />.
          </p>
          <div className="flex justify-end">
            <Button look="main" onClick={onClose}>
              I have it
            </Button>
          </div>
        </div>
      ) : (
        <Form change={make} act="Make the key" onCancel={onClose}>
          <TextField
            label="Name"
            hint="What will use it, such as “laptop”."
            fault={faultOf(make.error)("name")}
            autoFocus
            maxLength={100}
            value={name}
            onChange={setName}
          />
          {plan === "free" && replaces && (
            <Notice look="warn">Your account has one key: the one you have stops working.</Notice>
          )}
        </Form>
      )}
    </Dialog>
  );
}

function Revoke({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const revoke = useChange({
    run: () => remove(`/auth/api-keys/${apiKey.id}`),
    touches: [keyList.queryKey],
    done: onClose,
  });
  return (
    <Confirm
      title="Revoke this key?"
      act="Revoke the key"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        Programs that use {apiKey.prefix}…{apiKey.last4} are refused from then on. What was asked for with it
        and is not done yet ends: calls under way fail, its schedules pause, and calls of tools that wait for
        your yes are not made.
      </p>
    </Confirm>
  );
}
