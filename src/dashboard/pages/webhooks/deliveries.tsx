import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import type { Delivery, DeliveryDetail, Endpoint } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card, Empty } from "../../ui/page.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { useReplay } from "./replay.tsx";
import { deliveriesKey, deliveryList, MAX_LISTED } from "./queries.ts";
import { DeliveryState, isWaiting } from "./delivery-state.tsx";
import { EVENT_WORDS, faultWords } from "./words.ts";

/** The deliveries of an endpoint with their answers, and the button to send one again. */
export function Deliveries({ endpoint }: { endpoint: Endpoint }) {
  const { data: deliveries, error, isPending, refetch } = useQuery(deliveryList(endpoint.id));
  const someFailed = deliveries?.some(({ status }) => status === "failed") ?? false;
  const replay = useReplay(endpoint);
  return (
    <Card
      title="Deliveries"
      actions={someFailed && endpoint.enabled && <Button onClick={replay.ask}>Send all failed again</Button>}
    >
      <Fault error={error} retry={() => void refetch()} />
      {replay.shown}
      {isPending && <Loading what="the deliveries" />}
      {deliveries?.length === 0 && (
        <Empty title="Nothing sent yet">Send a test to see whether it arrives.</Empty>
      )}
      <ul className="divide-y divide-line">
        {deliveries?.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} endpoint={endpoint} />
        ))}
      </ul>
      {deliveries && deliveries.length > 0 && (
        <p className="pt-3 text-sm text-soft">
          {deliveries.length < MAX_LISTED
            ? "All of the last 30 days."
            : `The newest ${MAX_LISTED} of the last 30 days.`}
        </p>
      )}
    </Card>
  );
}

function DeliveryRow({ delivery, endpoint }: { delivery: Delivery; endpoint: Endpoint }) {
  const [open, setOpen] = useState(false);
  const { event_type, livemode, response_status, error, created } = delivery;
  return (
    <li>
      <details className="group" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm">
          <ChevronRight aria-hidden className="size-4 shrink-0 text-soft group-open:rotate-90" />
          <DeliveryState delivery={delivery} />
          <span className="flex-1 basis-48">
            {livemode ? (EVENT_WORDS[event_type] ?? event_type) : "A test"}
          </span>
          <span className="text-soft">
            {response_status === null ? error && faultWords(error) : `answered ${response_status}`}
          </span>
          <span className="text-soft">
            <Time at={created} />
          </span>
        </summary>
        {open && <Detail delivery={delivery} endpoint={endpoint} />}
      </details>
    </li>
  );
}

function Detail({ delivery, endpoint }: { delivery: Delivery; endpoint: Endpoint }) {
  const say = useToast();
  const waits = isWaiting(delivery);
  const path = `/v1/webhooks/${endpoint.id}/deliveries/${delivery.id}`;
  const key = deliveriesKey(endpoint.id);
  const { data, error, refetch } = useQuery({
    // The key changes with each attempt, whose outcome the detail shows.
    queryKey: [...key, delivery.id, delivery.status, delivery.attempts],
    queryFn: ({ signal }) => get<DeliveryDetail>(path, signal),
  });
  const retry = useChange({
    run: () => post(`${path}/retry`),
    touches: [key],
    done: () => say(waits ? "It is tried now." : "It is sent again."),
  });
  return (
    <div className="grid gap-4 pb-4">
      <Facts delivery={delivery} />
      <Fault error={error} retry={() => void refetch()} />
      <div className="grid gap-4 lg:grid-cols-2">
        {data && <Sent request={data.request} />}
        <Answer delivery={delivery} />
      </div>
      <Fault error={retry.error} />
      {(waits || delivery.status !== "pending") && (
        <div>
          <Button busy={retry.isPending} onClick={() => retry.mutate()}>
            {waits ? "Try it now" : "Send it again"}
          </Button>
        </div>
      )}
    </div>
  );
}

function Facts({ delivery }: { delivery: Delivery }) {
  const { error, attempts, max_attempts, next_attempt_at, last_attempt_at, url, message_id } = delivery;
  return (
    <div className="grid gap-1 text-sm wrap-anywhere">
      {error && <p className="text-bad">{faultWords(error)}</p>}
      <p>
        Tried {attempts} of {max_attempts} times at {url}
        {last_attempt_at !== null && (
          <>
            , last <Time at={last_attempt_at} />
          </>
        )}
        {next_attempt_at !== null && (
          <>
            , next <Time at={next_attempt_at} />
          </>
        )}
        .
      </p>
      {message_id !== null && (
        <p>
          <Link to="/messages/$message_id" params={{ message_id }} className="underline">
            The message that it tells of
          </Link>
        </p>
      )}
    </div>
  );
}

function Sent({ request }: Pick<DeliveryDetail, "request">) {
  const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <Block title="What was sent">
      {[...lines, "service-signature: t=…,v1=… (anew each time)", "", request.body].join("\n")}
    </Block>
  );
}

function Answer({ delivery: { response_status, response_body, duration_ms } }: { delivery: Delivery }) {
  const head = response_status === null ? "No answer" : `Status ${response_status}`;
  const took = duration_ms === null ? "" : ` after ${duration_ms} ms`;
  return (
    <Block title="What came back">{[`${head}${took}`, "", response_body ?? ""].join("\n").trim()}</Block>
  );
}

function Block({ title, children }: { title: string; children: string }) {
  return (
    <section aria-label={title} className="grid min-w-0 content-start gap-1">
      <h3 className="text-sm font-medium">{title}</h3>
      <Scroll label={title} className="max-h-72 rounded-md bg-back p-3">
        <pre className="font-mono text-sm whitespace-pre-wrap wrap-anywhere">{children}</pre>
      </Scroll>
    </section>
  );
}
