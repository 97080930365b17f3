import type { App } from "../../app.ts";
import type { EventRow, UserRow, WebhookDeliveryRow, WebhookEndpointRow } from "../../db/schema.ts";
import { type AttemptOutcome, attemptOnce } from "./post-event.ts";
import { type DeliveryView, viewDelivery } from "./deliveries.ts";
import { ownEndpoint, readableSecret } from "./endpoints.ts";
import { eventRow } from "./events.ts";

export interface TestView {
  delivery: DeliveryView;
  event_id: string;
  status: DeliveryView["status"];
}

/** Sends a made-up event once, whether the endpoint is switched on or not, and lists it like any other delivery. */
export async function testEndpoint(app: App, user: UserRow, endpoint: WebhookEndpointRow): Promise<TestView> {
  readableSecret(app, endpoint);
  const event = syntheticEvent(app, user);
  const begun = app.now();
  const outcome = await attemptOnce(app, { endpoint, event, attempt: 1, is_only: true });
  const row = { ...deliveryRow(app, { endpoint, event, outcome }), created: begun, last_attempt_at: begun };
  await app.write(async (tx) => {
    // It may have been deleted while we waited for its answer.
    await ownEndpoint(tx, user, endpoint.id);
    await tx.insertInto("events").values(event).execute();
    await tx.insertInto("webhook_deliveries").values(row).execute();
  });
  const { message_id, livemode, type: event_type } = event;
  const delivery = viewDelivery(app, {
    ...row,
    message_id,
    livemode,
    event_type,
    endpoint_url: endpoint.url,
  });
  return { delivery, event_id: event.id, status: delivery.status };
}

function syntheticEvent(app: App, user: UserRow): EventRow {
  const event = eventRow(app, {
    user_id: user.id,
    type: "message.completed",
    livemode: false,
    object: {
      message_id: app.newId(),
      conversation_id: null,
      source: "test",
      status: "done",
      result: "This is a test of your webhook endpoint. No message was processed.",
      error: null,
      usage: null,
      subject: "Test event",
      created: app.now(),
      inbox_id: null,
      sender: user.email,
      tags: [],
      attachments: [],
      metadata: {},
    },
  });
  // The message that the body speaks of does not exist.
  return { ...event, message_id: null };
}

function deliveryRow(
  app: App,
  made: { endpoint: WebhookEndpointRow; event: EventRow; outcome: AttemptOutcome },
): Omit<WebhookDeliveryRow, "created" | "last_attempt_at"> {
  const { endpoint, event, outcome } = made;
  const { delivered, response_status, response_body, error, duration_ms } = outcome;
  return {
    id: app.newId(),
    endpoint_id: endpoint.id,
    event_id: event.id,
    status: delivered ? "delivered" : "failed",
    attempts: 1,
    response_status,
    response_body,
    error,
    duration_ms,
    url: endpoint.url,
    next_attempt_at: null,
    delivered_at: delivered ? app.now() : null,
  };
}
