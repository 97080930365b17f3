import type { Delivery } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Time } from "../../ui/time.tsx";
import { STATUSES } from "./words.ts";

/** What became of a delivery; of one that has failed and goes on, when it is tried again. */
export function DeliveryState({ delivery }: { delivery: Delivery }) {
  const { status, error, next_attempt_at } = delivery;
  if (status === "pending" && error !== null)
    return (
      <Badge look="warn">
        Will be tried again {next_attempt_at !== null && <Time at={next_attempt_at} />}
      </Badge>
    );
  const { look, word } = STATUSES[status];
  return <Badge look={look}>{word}</Badge>;
}
