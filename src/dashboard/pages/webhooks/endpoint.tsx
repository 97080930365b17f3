import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useChange } from "../../api/changes.ts";
import { get, patch, post } from "../../api/client.ts";
import { endpointList } from "../../api/lists.ts";
import type { Delivery, Endpoint as EndpointRow, TestDelivery } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Toggle } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { EndpointState, EVENT_WORDS } from "./webhooks.tsx";

const REFRESH_MS = 5_000;

export function Endpoint() {
  const { endpoint_id } = useParams({ strict: false });
  const { data: endpoints, error, refetch } = useQuery(endpointList);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!endpoints) return <Loading what="the endpoint" />;
  const endpoint = endpoints.find(({ id }) => id === endpoint_id);
  return endpoint ? <EndpointPage endpoint={endpoint} /> : <NotFound />;
}

const deliveriesKey = (id: string) => ["deliveries", id];

function EndpointPage({ endpoint }: { endpoint: EndpointRow }) {
  const navigate = useNavigate();
  const path = `/v1/webhooks/${endpoint.id}`;
  const touches = [endpointList.queryKey, deliveriesKey(endpoint.id)];
  const test = useChange<void, TestDelivery>({ run: () => post<TestDelivery>(`${path}/test`), touches });
  const change = useChange<boolean>({ run: (enabled) => patch(path, { enabled }), touches });
  return (
    <Page
      title={endpoint.description ?? "Webhook endpoint"}
      actions={
        <>
          <Button busy={test.isPending} onClick={() => test.mutate()}>
            Send a test
          </Button>
          <DeleteButton
            title="Delete this endpoint?"
            act="Delete the endpoint"
            path={path}
            touches={[endpointList.queryKey]}
            done={() => void navigate({ to: "/webhooks" })}
          >
            <p>Nothing more is sent to {endpoint.url}, and its log is erased.</p>
          </DeleteButton>
        </>
      }
    >
      <Card>
        <div className="grid gap-4">
          <div className="flex flex-wrap items-center gap-3">
            <Copyable text={endpoint.url} />
            <EndpointState endpoint={endpoint} />
          </div>
          {endpoint.disabled_reason && <Notice look="bad">{endpoint.disabled_reason}</Notice>}
          <Toggle label="On" checked={endpoint.enabled} onChange={(on) => change.mutate(on)} />
          <Fault error={change.error ?? test.error} />
          {test.data && <TestVerdict delivery={test.data.delivery} />}
          <ul className="list-disc pl-5 text-sm text-soft">
            {endpoint.event_types.map((type) => (
              <li key={type}>
                {EVENT_WORDS[type] ?? type} <code className="font-mono">({type})</code>
              </li>
            ))}
          </ul>
        </div>
      </Card>
      <Secret path={path} />
      <Deliveries endpoint={endpoint} />
    </Page>
  );
}

function TestVerdict({ delivery }: { delivery: Delivery }) {
  return delivery.status === "delivered" ? (
    <Notice look="good">
      It answered {delivery.response_status} after {delivery.duration_ms} ms.
    </Notice>
  ) : (
    <Notice look="bad">It did not work: {delivery.error ?? delivery.response_status}.</Notice>
  );
}

/** The secret, hidden until it is wanted, and how to check a signature by hand. */
function Secret({ path }: { path: string }) {
  const say = useToast();
  const show = useChange<void, { secret: string }>({
    run: () => get<{ secret: string }>(`${path}/secret`),
    touches: [],
  });
  const rotate = useChange<void, { secret: string }>({
    run: () => post<{ secret: string }>(`${path}/rotate-secret`),
    touches: [],
    done: () => say("For 24 hours both secrets sign, so you can change your program without a gap."),
  });
  const secret = rotate.data?.secret ?? show.data?.secret;
  return (
    <Card
      title="Signature"
      actions={
        <>
          <Button busy={show.isPending} onClick={() => show.mutate()}>
            Show the secret
          </Button>
          <Button busy={rotate.isPending} onClick={() => rotate.mutate()}>
            New secret
          </Button>
        </>
      }
    >
      <div className="grid gap-3">
        <p className="text-sm text-soft">
          Each note carries <code className="font-mono">Service-Signature: t=…,v1=…</code>. Check it before
          you believe the note;{" "}
          <a href="/docs/webhooks" className="text-accent underline">
            the guide
          </a>{" "}
          has it ready for several languages.
        </p>
        {secret && <Copyable text={secret} label="Copy the secret" />}
        <Fault error={show.error ?? rotate.error} />
      </div>
    </Card>
  );
}

const DELIVERY_LOOKS: Record<string, BadgeLook> = { delivered: "good", pending: "accent", failed: "bad" };

function Deliveries({ endpoint }: { endpoint: EndpointRow }) {
  const say = useToast();
  const path = `/v1/webhooks/${endpoint.id}`;
  const key = deliveriesKey(endpoint.id);
  const {
    data: deliveries,
    error,
    isPending,
  } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => get<Delivery[]>(`${path}/deliveries`, signal),
    refetchInterval: REFRESH_MS,
  });
  const replay = useChange<void, { replayed: number }>({
    run: () => post<{ replayed: number }>(`${path}/replay`, { since: 0 }),
    touches: [key],
    done: () => say("All that failed is sent again."),
  });
  const someFailed = deliveries?.some(({ status }) => status === "failed") ?? false;
  return (
    <Card
      title="Deliveries"
      actions={
        someFailed && (
          <Button busy={replay.isPending} onClick={() => replay.mutate()}>
            Send all failed again
          </Button>
        )
      }
    >
      <Fault error={error ?? replay.error} />
      {isPending && <Loading what="the deliveries" />}
      {deliveries?.length === 0 && (
        <Empty title="Nothing sent yet">Send a test to see whether it arrives.</Empty>
      )}
      <ul className="divide-y divide-line">
        {deliveries?.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} path={path} listKey={key} />
        ))}
      </ul>
    </Card>
  );
}

function DeliveryRow({ delivery, path, listKey }: { delivery: Delivery; path: string; listKey: string[] }) {
  const retry = useChange({ run: () => post(`${path}/deliveries/${delivery.id}/retry`), touches: [listKey] });
  return (
    <li>
      <details>
        <summary className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
          <Badge look={DELIVERY_LOOKS[delivery.status] ?? "plain"}>{delivery.status}</Badge>
          <span className="flex-1">{EVENT_WORDS[delivery.event_type] ?? delivery.event_type}</span>
          <span className="text-soft">{delivery.response_status ?? delivery.error}</span>
          <span className="text-soft">
            <Time at={delivery.created} />
          </span>
        </summary>
        <div className="grid gap-3 pb-3">
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm wrap-anywhere">
            <dt className="text-soft">Event</dt>
            <dd className="font-mono">{delivery.event_id}</dd>
            <dt className="text-soft">Attempts</dt>
            <dd>
              {delivery.attempts} of {delivery.max_attempts}
              {delivery.next_attempt_at !== null && (
                <>
                  , the next <Time at={delivery.next_attempt_at} />
                </>
              )}
            </dd>
            {delivery.error && (
              <>
                <dt className="text-soft">Fault</dt>
                <dd>{delivery.error}</dd>
              </>
            )}
            {delivery.response_body && (
              <>
                <dt className="text-soft">Answer</dt>
                <dd>
                  <pre className="max-h-48 overflow-auto rounded-md bg-back p-2 whitespace-pre-wrap">
                    {delivery.response_body}
                  </pre>
                </dd>
              </>
            )}
          </dl>
          <Fault error={retry.error} />
          {delivery.status !== "pending" && (
            <div>
              <Button busy={retry.isPending} onClick={() => retry.mutate()}>
                Send it again
              </Button>
            </div>
          )}
        </div>
      </details>
    </li>
  );
}
