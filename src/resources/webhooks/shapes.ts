import { t } from "elysia";
import { EVENT_TYPES } from "./events.ts";
import { moment } from "../../http/shapes.ts";

const EVENT_ID = "evt_01kf0q8v7mfz5s3x2c9d4b6h1n";

const NONE = { examples: [null] };

const eventType = t.Union(
  EVENT_TYPES.map((name) => t.Literal(name)),
  { examples: ["message.completed"] },
);

const EndpointMembers = {
  id: t.String({ format: "uuid" }),
  url: t.String({ examples: ["https://hooks.example.com/mailwright"] }),
  event_types: t.Array(eventType, { examples: [["message.completed", "message.failed"]] }),
  enabled: t.Boolean(),
  consecutive_failures: t.Integer({
    minimum: 0,
    description: "Deliveries in a row that used up all of their attempts. Too many switch the endpoint off.",
  }),
  disabled_reason: t.Nullable(t.String({ description: "Why it was switched off by itself." }), NONE),
  description: t.Nullable(t.String({ description: "Your own words.", examples: ["Ticket system"] })),
  created: moment("When it was made"),
  updated: moment("When it was last changed"),
};

export const EndpointShape = t.Object(EndpointMembers, {
  $id: "WebhookEndpoint",
  description: "An address that events are sent to.",
});

const secret = t.String({
  description: "Signs every delivery.",
  examples: ["whsec_dGhpcyBpcyBhbiBleGFtcGxlLCBub3QgYSBzZWNyZXQ="],
});

export const NewEndpointShape = t.Object({ ...EndpointMembers, secret }, { $id: "NewWebhookEndpoint" });

export const SecretShape = t.Object({ secret }, { $id: "WebhookSecret" });

const deliveryStatus = t.Union([t.Literal("delivered"), t.Literal("pending"), t.Literal("failed")]);

const DeliveryMembers = {
  id: t.String({ format: "uuid" }),
  event_id: t.String({
    description: "The same for every endpoint and every attempt.",
    examples: [EVENT_ID],
  }),
  event_type: eventType,
  message_id: t.Nullable(
    t.String({ format: "uuid", description: "Null for a test, which is about no message." }),
  ),
  livemode: t.Boolean({ description: "False for a test." }),
  status: deliveryStatus,
  attempts: t.Integer({ minimum: 0, examples: [1] }),
  max_attempts: t.Integer({ examples: [6] }),
  response_status: t.Nullable(
    t.Integer({ description: "What the last attempt was answered with.", examples: [200] }),
  ),
  response_body: t.Nullable(t.String({ description: "How that answer begins.", examples: ["ok"] })),
  error: t.Nullable(
    t.String({
      description:
        "Why the last attempt failed: `timeout`, `connection`, `tls`, `blocked_address`, `http_500` and so on; `endpoint_disabled` if there was none; `secret_unreadable` if nobody can sign it any more; `dropped` if the operator took it out of the queue; `interrupted` if the server ended in the middle of it.",
    }),
    NONE,
  ),
  duration_ms: t.Nullable(t.Integer({ description: "How long the last attempt took.", examples: [42] })),
  url: t.String({
    description: "Where it goes, or went.",
    examples: ["https://hooks.example.com/mailwright"],
  }),
  created: moment("When it was queued for this endpoint"),
  last_attempt_at: t.Nullable(moment("When it was last tried")),
  next_attempt_at: t.Nullable(moment("When it is tried next"), NONE),
  delivered_at: t.Nullable(moment("When it was acknowledged")),
};

export const DeliveryShape = t.Object(DeliveryMembers, {
  $id: "WebhookDelivery",
  description: "One event on its way to one endpoint.",
});

export const DeliveryDetailShape = t.Object(
  {
    ...DeliveryMembers,
    request: t.Object(
      {
        headers: t.Record(t.String(), t.String(), {
          description: "Without those of the signature, which is made anew for each attempt and not kept.",
          examples: [{ "service-event-id": EVENT_ID, "service-delivery-attempt": "1" }],
        }),
        body: t.String({ description: "Byte for byte.", examples: ['{"id":"evt_1"}'] }),
      },
      { description: "What is sent." },
    ),
  },
  { $id: "WebhookDeliveryDetail", description: "A delivery with what was sent." },
);

export const TestDeliveryShape = t.Object(
  {
    delivery: DeliveryShape,
    event_id: t.String({ description: "As in `delivery`.", examples: [EVENT_ID] }),
    status: deliveryStatus,
  },
  { $id: "WebhookTest", description: "What came of a test event." },
);

export const CountsShape = t.Object(
  {
    failed: t.Integer({
      minimum: 0,
      description: "Deliveries that have failed, tests left out: what `replay` with `since` 0 sends again.",
      examples: [3],
    }),
    pending: t.Integer({ minimum: 0, description: "Deliveries that are still to be made.", examples: [2] }),
    retrying: t.Integer({
      minimum: 0,
      description: "Those of them that have failed, and will be tried again.",
      examples: [1],
    }),
  },
  { $id: "WebhookCounts" },
);

export const ReplayShape = t.Object(
  { replayed: t.Integer({ minimum: 0, description: "How many are sent again.", examples: [3] }) },
  { $id: "WebhookReplay" },
);
