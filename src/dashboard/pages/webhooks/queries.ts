import { queryOptions } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { Delivery, WebhookCounts } from "../../api/shapes.ts";

/** The most deliveries that the server lists. */
export const MAX_LISTED = 100;
export const REFRESH_MS = 5_000;
/** How often the list is asked for while an attempt is about to end. */
const SOON_MS = 700;
const SOON_SECONDS = 10;

export const deliveriesKey = (endpoint_id: string) => ["deliveries", endpoint_id];

/** The deliveries of an endpoint, newest first; the list is asked for again while it is looked at. */
export const deliveryList = (endpoint_id: string) =>
  queryOptions({
    queryKey: deliveriesKey(endpoint_id),
    queryFn: ({ signal }) =>
      get<Delivery[]>(`/v1/webhooks/${endpoint_id}/deliveries?limit=${MAX_LISTED}`, signal),
    refetchInterval: ({ state }) => (state.data?.some(isDueSoon) ? SOON_MS : REFRESH_MS),
  });

/** How many deliveries of an endpoint have failed, and how many are still to be made. */
export const deliveryCounts = (endpoint_id: string) =>
  queryOptions({
    queryKey: ["delivery-counts", endpoint_id],
    queryFn: ({ signal }) => get<WebhookCounts>(`/v1/webhooks/${endpoint_id}/counts`, signal),
  });

function isDueSoon({ next_attempt_at }: Delivery): boolean {
  return next_attempt_at !== null && next_attempt_at - Date.now() / 1_000 < SOON_SECONDS;
}
