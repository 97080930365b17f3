import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { faultOf, get, patch, post } from "../../api/client.ts";
import { endpointList } from "../../api/lists.ts";
import type { Delivery, Endpoint as EndpointRow, TestDelivery } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Toggle } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { useToast } from "../../ui/toast.tsx";
import { Deliveries } from "./deliveries.tsx";
import { bodyOf, EndpointFields, type Settings, settingsOf } from "./endpoint-fields.tsx";
import { deliveriesKey, REFRESH_MS } from "./queries.ts";
import { Secret } from "./secret.tsx";
import { SignatureCheck } from "./signature-check.tsx";
import { EndpointState } from "./webhooks.tsx";
import { EVENT_WORDS, faultWords } from "./words.ts";

export function Endpoint() {
  const { endpoint_id } = useParams({ strict: false });
  const { data: endpoints, error, refetch } = useQuery({ ...endpointList, refetchInterval: REFRESH_MS });
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!endpoints) return <Loading what="the endpoint" />;
  const endpoint = endpoints.find(({ id }) => id === endpoint_id);
  return endpoint ? <EndpointPage endpoint={endpoint} /> : <NotFound />;
}

function EndpointPage({ endpoint }: { endpoint: EndpointRow }) {
  const navigate = useNavigate();
  const say = useToast();
  const [tab, setTab] = useState<"deliveries" | "signature">("deliveries");
  const [changing, setChanging] = useState(false);
  const path = `/v1/webhooks/${endpoint.id}`;
  const touches = [endpointList.queryKey, deliveriesKey(endpoint.id)];
  const test = useChange<void, TestDelivery>({ run: () => post<TestDelivery>(`${path}/test`), touches });
  const restore = useChange<Changed>({
    run: async ({ before, made }) => {
      refuseChanged(await get<EndpointRow>(path), made, ["url", "description", "event_types"]);
      return patch(path, bodyOf(before));
    },
    touches,
    done: () => say("It is as it was."),
  });
  return (
    <Page
      title={endpoint.description ?? "Webhook endpoint"}
      actions={
        <>
          <Button busy={test.isPending} onClick={() => test.mutate()}>
            Send a test
          </Button>
          <Button onClick={() => setChanging(true)}>Change</Button>
          <DeleteButton
            title="Delete this endpoint?"
            act="Delete the endpoint"
            path={path}
            touches={[endpointList.queryKey]}
            done={() => void navigate({ to: "/webhooks" })}
          >
            <p>
              Nothing more is sent to {endpoint.url}. Its log and its secret are gone. To pause it, switch it
              off instead.
            </p>
          </DeleteButton>
        </>
      }
    >
      <Fault error={test.error} />
      {test.data && <TestVerdict delivery={test.data.delivery} />}
      <Summary endpoint={endpoint} />
      <Tabs
        label="Endpoint"
        tabs={[
          { id: "deliveries", title: "Deliveries" },
          { id: "signature", title: "Secret and signature" },
        ]}
        chosen={tab}
        onChoose={setTab}
      >
        {tab === "deliveries" ? (
          <Deliveries endpoint={endpoint} />
        ) : (
          <div className="grid gap-4">
            <Secret endpoint={endpoint} />
            <SignatureCheck endpoint={endpoint} />
          </div>
        )}
      </Tabs>
      {changing && (
        <Change
          endpoint={endpoint}
          onChanged={(changed) => {
            setChanging(false);
            say("The endpoint is changed.", () => restore.mutateAsync(changed));
          }}
          onClose={() => setChanging(false)}
        />
      )}
    </Page>
  );
}

function TestVerdict({ delivery }: { delivery: Delivery }) {
  return delivery.status === "delivered" ? (
    <Notice look="good">
      It arrived: your program answered {delivery.response_status} after {delivery.duration_ms} ms.
    </Notice>
  ) : (
    <Notice look="bad">It did not arrive. {faultWords(delivery.error ?? "connection")}</Notice>
  );
}

function Summary({ endpoint }: { endpoint: EndpointRow }) {
  const change = useChange<boolean>({
    run: (enabled) => patch(`/v1/webhooks/${endpoint.id}`, { enabled }),
    touches: [endpointList.queryKey, deliveriesKey(endpoint.id)],
  });
  return (
    <Card>
      <div className="grid gap-4">
        <div className="flex flex-wrap items-center gap-3">
          <Copyable text={endpoint.url} label="Copy the address" />
          <EndpointState endpoint={endpoint} />
        </div>
        {endpoint.disabled_reason && <Notice look="bad">{endpoint.disabled_reason}</Notice>}
        <Toggle
          label="Send to it"
          hint="Off, nothing is sent, and what happens meanwhile is listed as failed, to be sent later."
          checked={endpoint.enabled}
          disabled={change.isPending}
          onChange={(on) => change.mutate(on)}
        />
        <Fault error={change.error} />
        <div className="text-sm">
          <p>It is told when</p>
          <ul className="list-disc pl-5 text-soft">
            {endpoint.event_types.map((type) => (
              <li key={type}>
                {EVENT_WORDS[type] ?? type} <code className="font-mono">({type})</code>
              </li>
            ))}
          </ul>
        </div>
      </div>
    </Card>
  );
}

interface Changed {
  before: Settings;
  made: EndpointRow;
}

interface ChangeProps {
  endpoint: EndpointRow;
  onChanged: (changed: Changed) => void;
  onClose: () => void;
}

function Change({ endpoint, onChanged, onClose }: ChangeProps) {
  const before = settingsOf(endpoint);
  const [settings, setSettings] = useState(before);
  const save = useChange({
    run: () => patch<EndpointRow>(`/v1/webhooks/${endpoint.id}`, bodyOf(settings)),
    touches: [endpointList.queryKey],
    done: (made) => onChanged({ before, made }),
  });
  return (
    <Dialog title="Change the endpoint" onClose={onClose}>
      <Form change={save} act="Save" onCancel={onClose}>
        <EndpointFields settings={settings} fault={faultOf(save.error)} onChange={setSettings} />
      </Form>
    </Dialog>
  );
}
