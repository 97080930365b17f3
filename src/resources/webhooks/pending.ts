import { deleteWaitingJobWithKey } from "../../jobs/remove.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { WebhookEndpointRow } from "../../db/schema.ts";
import type { Job } from "../../jobs/queue.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import { attemptLater } from "./fan-out.ts";

/** A step changes so many at the most. */
const ROWS = 200;

type Error = "endpoint_disabled" | "dropped";

/**
 * What waited at an endpoint that was switched off has failed, and is there to be replayed. Many fail some at a time, by
 * the job that would have attempted them.
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

/** The same, done with once it resolves, unless it is switched on meanwhile. */
export async function failAllPending(app: App, { id }: Pick<WebhookEndpointRow, "id">): Promise<void> {
  await takeTurns(endlessShift(app), async (tx) => {
    const off = await switchedOff(tx, { id });
    return off.length > 0 && failSomePending(tx, id);
  });
}

/** False once there are no more. */
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

/** As many as it takes, in one transaction: `dropMostPending` leaves few. */
export async function dropPending(
  _app: App,
  tx: Db,
  { payload }: Pick<Job<"deliver_webhooks">, "payload">,
): Promise<void> {
  while (await failSomePending(tx, payload.endpoint_id, "dropped"));
}
