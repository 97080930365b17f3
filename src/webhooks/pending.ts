import type { Db } from "../db/database.ts";
import type { WebhookEndpointRow } from "../db/schema.ts";

/** What waits for another attempt goes to where the endpoint is now. */
export async function redirectPending(tx: Db, { id, url }: WebhookEndpointRow): Promise<void> {
  const waiting = tx.updateTable("webhook_deliveries").set({ url }).where("endpoint_id", "=", id);
  await waiting.where("status", "=", "pending").execute();
}

/** Makes all that waits at an endpoint due now; each attempt counts as one of the delivery's. For while no job runs there. */
export async function bringForward(tx: Db, endpoint_id: string, now: number): Promise<void> {
  await tx
    .updateTable("webhook_deliveries")
    .set({ next_attempt_at: now })
    .where("endpoint_id", "=", endpoint_id)
    .where("status", "=", "pending")
    .where("next_attempt_at", ">", now)
    .execute();
}

/** Of an endpoint that was switched off, or whose queue was dropped: what waited is there to be replayed. */
export async function failPending(
  tx: Db,
  endpoint_id: string,
  error: "endpoint_disabled" | "dropped" = "endpoint_disabled",
): Promise<void> {
  await tx
    .updateTable("webhook_deliveries")
    .set({ status: "failed", error, next_attempt_at: null })
    .where("endpoint_id", "=", endpoint_id)
    .where("status", "=", "pending")
    .execute();
}

/** Of an endpoint that is gone. One that is running finds nothing more to do. */
export async function cancelAttempts(tx: Db, endpoint_id: string): Promise<void> {
  await tx
    .deleteFrom("jobs")
    .where("dedupe_key", "=", `webhook:${endpoint_id}`)
    .where("status", "=", "pending")
    .execute();
}
