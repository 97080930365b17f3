import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { endpointList } from "../../api/lists.ts";
import type { Endpoint, NewEndpoint as Made } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { TextField } from "../../ui/text-field.tsx";

export const EVENT_WORDS: Record<string, string> = {
  "message.received": "A message was accepted",
  "message.completed": "A message was answered",
  "message.failed": "A message could not be answered",
  "message.skipped": "A message was left alone",
};

export function Webhooks() {
  const { data: endpoints, error, isPending, refetch } = useQuery(endpointList);
  const [making, setMaking] = useState(false);
  const { limits } = useMe();
  const button = (
    <Button look="main" icon={<Plus />} onClick={() => setMaking(true)}>
      New endpoint
    </Button>
  );
  return (
    <Page
      title="Webhooks"
      intro="Your own programs hear of every message: Mailwright sends a signed note to an address of yours."
      actions={endpoints && endpoints.length > 0 && button}
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your endpoints" />}
      {endpoints?.length === 0 && (
        <Empty title="No endpoint yet" action={button}>
          An endpoint is an address of a program that takes such notes. If you have none, you need none.
        </Empty>
      )}
      {endpoints && endpoints.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {endpoints.map((endpoint) => (
            <Row key={endpoint.id} endpoint={endpoint} />
          ))}
        </ul>
      )}
      {endpoints && (
        <p className="text-sm text-soft">
          {endpoints.length} of {limits.webhooks} endpoints that your plan allows.
        </p>
      )}
      {making && <NewEndpoint onClose={() => setMaking(false)} />}
    </Page>
  );
}

function Row({ endpoint }: { endpoint: Endpoint }) {
  return (
    <li>
      <Link
        to="/webhooks/$endpoint_id"
        params={{ endpoint_id: endpoint.id }}
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
      >
        <span className="grid min-w-0 flex-1">
          <span className="truncate font-mono text-sm">{endpoint.url}</span>
          {endpoint.description && <span className="truncate text-sm text-soft">{endpoint.description}</span>}
        </span>
        <EndpointState endpoint={endpoint} />
      </Link>
    </li>
  );
}

export function EndpointState({ endpoint }: { endpoint: Endpoint }) {
  if (!endpoint.enabled) return <Badge look="bad">Switched off</Badge>;
  if (endpoint.consecutive_failures > 0)
    return <Badge look="warn">{endpoint.consecutive_failures} failed in a row</Badge>;
  return <Badge look="good">On</Badge>;
}

function NewEndpoint({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [url, setUrl] = useState("https://");
  const [description, setDescription] = useState("");
  const [types, setTypes] = useState(Object.keys(EVENT_WORDS));
  const create = useChange<void, Made>({
    run: () =>
      post<Made>("/v1/webhooks", { url, event_types: types, ...(description ? { description } : {}) }),
    touches: [endpointList.queryKey],
  });
  const fault = faultOf(create.error);
  const toggle = (type: string, on: boolean): void =>
    setTypes((before) => (on ? [...before, type] : before.filter((other) => other !== type)));
  const made = create.data;
  return (
    <Dialog title="New endpoint" onClose={onClose}>
      {made ? (
        <div className="grid gap-4">
          <Notice look="good">The endpoint is made. This secret signs what is sent to it:</Notice>
          <Copyable text={made.secret} label="Copy the secret" />
          <div className="flex justify-end">
            <Button
              look="main"
              onClick={() =>
                void navigate({ to: "/webhooks/$endpoint_id", params: { endpoint_id: made.id } })
              }
            >
              Open the endpoint
            </Button>
          </div>
        </div>
      ) : (
        <Form change={create} act="Make the endpoint" onCancel={onClose}>
          <TextField
            label="Address"
            hint="Where your program takes a POST."
            fault={fault("url")}
            autoFocus
            required
            type="url"
            value={url}
            onChange={setUrl}
          />
          <TextField
            label="What it is for"
            fault={fault("description")}
            maxLength={500}
            value={description}
            onChange={setDescription}
          />
          <fieldset className="grid gap-1">
            <legend className="mb-1 text-sm font-medium">Tell it when</legend>
            {Object.entries(EVENT_WORDS).map(([type, words]) => (
              <Checkbox
                key={type}
                label={words}
                checked={types.includes(type)}
                onChange={(event) => toggle(type, event.target.checked)}
              />
            ))}
            {fault("event_types") && <p className="text-sm text-bad">{fault("event_types")}</p>}
          </fieldset>
        </Form>
      )}
    </Dialog>
  );
}
