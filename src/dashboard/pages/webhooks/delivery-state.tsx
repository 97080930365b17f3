import type { Delivery } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Time } from "../../ui/time.tsx";
import { STATUSES } from "./words.ts";

/** What became of a delivery; of one that has failed and goes on, when it is tried again. */
export function DeliveryState({ delivery }: { delivery: Delivery }) {
  const { status, next_attempt_at } = delivery;
  if (isWaiting(delivery))
    return (
      <Badge look="warn">
        Will be tried again {next_attempt_at !== null && <Time at={next_attempt_at} />}
      </Badge>
    );
  const { look, word } = STATUSES[status];
  return <Badge look={look}>{word}</Badge>;
}

/** Whether a delivery has failed and is tried again later. */
export function isWaiting({ status, error }: Delivery): boolean {
  return status === "pending" && error !== null;
}
