import { storedJson } from "../../lib/stored-json.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { insertRow } from "../../db/prepared.ts";
import type { EventRow, WebhookDeliveryRow, WebhookEndpointRow } from "../../db/schema.ts";
import { hasten } from "../../jobs/hasten.ts";
import { enqueue, finishJob, type Job } from "../../jobs/queue.ts";
import { firstAttempt } from "./due-deliveries.ts";

/** Makes a delivery of an event for each endpoint that asked for its type, and has the attempts begun. */
export async function fanOutNow(app: App, job: Job<"fan_out_event">): Promise<void> {
  await app.write(async (tx) => {
    await finishJob(tx, job);
    await fanOut(app, tx, job);
  });
}

/**
 * Makes the deliveries of an event; also in the transaction that gives up the job for it. That work is too little to
 * be what made the server die again and again.
 */
export async function fanOut(app: App, tx: Db, job: Job<"fan_out_event">): Promise<void> {
  const event = await tx
    .selectFrom("events")
    .selectAll()
    .where("id", "=", job.payload.event_id)
    .executeTakeFirst();
  if (!event) return;
  for (const endpoint of await endpointsFor(tx, event)) await deliverLater(app, tx, { event, endpoint });
}

/** Queues a delivery. At an endpoint that is switched off it has failed already, and can be replayed. */
export async function deliverLater(
  app: App,
  tx: Db,
  { event, endpoint }: { event: Pick<EventRow, "id">; endpoint: WebhookEndpointRow },
): Promise<WebhookDeliveryRow> {
  const enabled = endpoint.enabled === 1;
  const row: WebhookDeliveryRow = {
    id: app.newId(),
    endpoint_id: endpoint.id,
    event_id: event.id,
    status: enabled ? "pending" : "failed",
    attempts: 0,
    response_status: null,
    response_body: null,
    error: enabled ? null : "endpoint_disabled",
    duration_ms: null,
    url: endpoint.url,
    created: app.now(),
    last_attempt_at: null,
    next_attempt_at: enabled ? firstAttempt(app) : null,
    delivered_at: null,
  };
  await insertRow(tx, "webhook_deliveries", row);
  if (row.next_attempt_at !== null) await attemptLater(app, tx, endpoint, row.next_attempt_at);
  return row;
}

/**
 * Plans the attempts that are due at an endpoint at that time; one job at a time works for an endpoint. However many
 * of an account's endpoints hang, they leave slots for those of others.
 */
export async function attemptLater(
  app: App,
  tx: Db,
  { id, user_id }: Pick<WebhookEndpointRow, "id" | "user_id">,
  run_at: number,
): Promise<void> {
  const work = { kind: "deliver_webhooks", dedupe_key: `webhook:${id}`, run_at } as const;
  const share = { account: user_id, slots: null };
  if (!(await enqueue(app, tx, { ...work, payload: { endpoint_id: id }, share })))
    await hasten(app, tx, work);
}

async function endpointsFor(tx: Db, event: EventRow): Promise<WebhookEndpointRow[]> {
  const endpoints = await tx
    .selectFrom("webhook_endpoints")
    .selectAll()
    .where("user_id", "=", event.user_id)
    .orderBy("id")
    .execute();
  return endpoints.filter(({ event_types }) => storedJson<string[]>(event_types, []).includes(event.type));
}
