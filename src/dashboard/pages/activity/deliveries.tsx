import { Link } from "@tanstack/react-router";
import { RotateCcw } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { DeliveryState } from "../webhooks/delivery-state.tsx";
import { EVENT_WORDS, faultWords } from "../webhooks/words.ts";

type Delivery = Story["deliveries"][number];

/** Which webhooks were told of the message, and what each answered. */
export function Deliveries({ deliveries }: Pick<Story, "deliveries">) {
  if (deliveries.length === 0) return null;
  return (
    <Card title="Who was told (webhooks)">
      <ul className="divide-y divide-line">
        {deliveries.map((delivery) => (
          <Row key={delivery.id} delivery={delivery} />
        ))}
      </ul>
    </Card>
  );
}

function Row({ delivery }: { delivery: Delivery }) {
  const { id, endpoint_id, url, event_type, status, attempts, created } = delivery;
  const again = useChange({
    run: () => post(`/v1/webhooks/${endpoint_id}/deliveries/${id}/retry`),
    touches: [["story"], ["deliveries", endpoint_id]],
  });
  return (
    <li className="grid gap-1 py-2 text-sm first:pt-0 last:pb-0">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <DeliveryState delivery={delivery} />
        <Link
          to="/webhooks/$endpoint_id"
          params={{ endpoint_id }}
          className="min-w-0 flex-1 basis-56 truncate font-mono text-accent underline"
        >
          {url}
        </Link>
        <span className="text-soft">{EVENT_WORDS[event_type] ?? event_type}</span>
        <span className="text-soft">
          <Time at={created} />
        </span>
        {status === "failed" && (
          <Button icon={<RotateCcw />} busy={again.isPending} onClick={() => again.mutate()}>
            Try again
          </Button>
        )}
      </div>
      <p className="text-soft wrap-anywhere">
        {outcomeOf(delivery)} {attempts > 1 && `It was tried ${attempts} times.`}
      </p>
      <Fault error={again.error} />
    </li>
  );
}

function outcomeOf({ response_status, error, response_body }: Delivery): string {
  if (response_status !== null)
    return `It answered ${response_status}${response_body ? `: ${response_body.slice(0, 200)}` : "."}`;
  return error === null ? "" : faultWords(error);
}
