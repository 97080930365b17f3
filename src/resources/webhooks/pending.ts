import { deleteWaitingJobWithKey } from "../../jobs/remove.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { WebhookEndpointRow } from "../../db/schema.ts";
import type { Job } from "../../jobs/queue.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import { attemptLater } from "./fan-out.ts";

/** The most deliveries that one step changes. */
const ROWS = 200;

type Error = "endpoint_disabled" | "dropped";

/**
 * Fails what waits at an endpoint that was switched off; it can be replayed. Many fail some at a time, by the job
 * that would have attempted them.
 */
export async function failPending(
  app: App,
  tx: Db,
  endpoint: Pick<WebhookEndpointRow, "id" | "user_id">,
): Promise<{ left: boolean }> {
  const left = await failSomePending(tx, endpoint.id);
  if (left) await attemptLater(app, tx, endpoint, app.now());
  return { left };
}

/**
 * Makes some of the waiting attempts at an endpoint due now; each still counts as one of its delivery's. False once there
 * are no more. To be called only while no job works for the endpoint.
 */
export async function bringSomeForward(tx: Db, endpoint_id: string, now: number): Promise<boolean> {
  const brought = await bringSome(tx, { endpoint_id, now });
  return brought.length === ROWS;
}

const bringSome = prepared((db, { endpoint_id, now }: { endpoint_id: string; now: number }) =>
  db
    .updateTable("webhook_deliveries")
    .set({ next_attempt_at: now })
    .where("id", "in", (eb) =>
      eb
        .selectFrom("webhook_deliveries")
        .select("id")
        .where("endpoint_id", "=", endpoint_id)
        .where("status", "=", "pending")
        .where("next_attempt_at", ">", now)
        .limit(ROWS),
    )
    .returning("id"),
);

/** Fails all that waits, step by step, unless the endpoint is switched on meanwhile. */
export async function failAllPending(app: App, { id }: Pick<WebhookEndpointRow, "id">): Promise<void> {
  await takeTurns(endlessShift(app), async (tx) => {
    const off = await switchedOff(tx, { id });
    return off.length > 0 && failSomePending(tx, id);
  });
}

/** Fails some of what waits. False once there are no more. */
export async function failSomePending(
  tx: Db,
  endpoint_id: string,
  error: Error = "endpoint_disabled",
): Promise<boolean> {
  const failed = await failSome(tx, { endpoint_id, error });
  return failed.length === ROWS;
}

const failSome = prepared((db, key: { endpoint_id: string; error: Error }) =>
  db
    .updateTable("webhook_deliveries")
    .set({ status: "failed", error: key.error, next_attempt_at: null })
    .where("id", "in", (eb) =>
      eb
        .selectFrom("webhook_deliveries")
        .select("id")
        .where("endpoint_id", "=", key.endpoint_id)
        .where("status", "=", "pending")
        .limit(ROWS),
    )
    .returning("id"),
);

const switchedOff = prepared((db, endpoint: { id: string }) =>
  db.selectFrom("webhook_endpoints").select("id").where("id", "=", endpoint.id).where("enabled", "=", 0),
);

/** Removes the attempts that wait for an endpoint that is gone. An attempt under way finds nothing more to do. */
export async function cancelAttempts(tx: Db, endpoint_id: string): Promise<void> {
  await deleteWaitingJobWithKey(tx, { dedupe_key: `webhook:${endpoint_id}` });
}

/** Removes all waiting deliveries in one transaction; `dropMostPending` has left few of them. */
export async function dropPending(
  _app: App,
  tx: Db,
  { payload }: Pick<Job<"deliver_webhooks">, "payload">,
): Promise<void> {
  while (await failSomePending(tx, payload.endpoint_id, "dropped"));
}
