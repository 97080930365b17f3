import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type {
  EventRow,
  MessageRow,
  UserRow,
  WebhookDeliveryRow,
  WebhookEndpointRow,
} from "../../db/schema.ts";
import { prepared } from "../../db/prepared.ts";
import { AppError } from "../../errors.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import { firstAttempt, waitsForNext } from "./due-deliveries.ts";
import { ownEndpoint } from "./endpoints.ts";
import { attemptLater } from "./fan-out.ts";
import { unsignedHeaders } from "./signature.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const LISTED_SECONDS = 30 * DAY_SECONDS;
const MAX_ABOUT_MESSAGE = 100;

export type DeliveryView = ReturnType<typeof viewDelivery>;

type ShownRow = WebhookDeliveryRow &
  Pick<EventRow, "message_id" | "livemode"> & { event_type: EventRow["type"]; endpoint_url: string };

/** Returns the deliveries of the last 30 days, newest first. */
export async function listDeliveries(
  app: App,
  user: UserRow,
  { id, limit }: { id: string; limit: number },
): Promise<DeliveryView[]> {
  const endpoint = await ownEndpoint(app.db, user, id);
  const rows = await recent(app, app.db, endpoint).orderBy("delivery.id", "desc").limit(limit).execute();
  return rows.map((row) => viewDelivery(app, row));
}

/** How many deliveries of the last 30 days have failed, tests left out, and how many wait. */
export async function countDeliveries(
  app: App,
  user: UserRow,
  id: string,
): Promise<{ failed: number; pending: number; retrying: number }> {
  const endpoint = await ownEndpoint(app.db, user, id);
  const rows = await app.db
    .selectFrom("webhook_deliveries as delivery")
    .innerJoin("events as event", "event.id", "delivery.event_id")
    .select(({ fn }) => [
      "delivery.status",
      fn.countAll<number>().as("count"),
      fn.count<number>("delivery.error").as("with_error"),
    ])
    .where("delivery.endpoint_id", "=", endpoint.id)
    .where("delivery.status", "in", ["failed", "pending"])
    .where("delivery.created", ">=", app.calmNow() - LISTED_SECONDS)
    .where("event.livemode", "=", 1)
    .groupBy("delivery.status")
    .execute();
  const failed = rows.find(({ status }) => status === "failed");
  const pending = rows.find(({ status }) => status === "pending");
  return {
    failed: failed?.count ?? 0,
    pending: pending?.count ?? 0,
    retrying: pending?.with_error ?? 0,
  };
}

/** One delivery, with what was sent. The signature is not kept: each attempt has its own. */
export async function readDelivery(
  app: App,
  user: UserRow,
  { id, delivery_id }: { id: string; delivery_id: string },
) {
  const endpoint = await ownEndpoint(app.db, user, id);
  const row = await recent(app, app.db, endpoint)
    .select("event.body")
    .where("delivery.id", "=", delivery_id)
    .executeTakeFirst();
  if (!row) throw noDelivery();
  const attempt = Math.max(1, row.attempts);
  const headers = unsignedHeaders({ id: row.event_id, type: row.event_type, attempt });
  return { ...viewDelivery(app, row), request: { headers, body: row.body } };
}

/** The deliveries about a message, newest first, each with its endpoint. */
export async function deliveriesAbout(app: App, message: Pick<MessageRow, "id">) {
  const rows = await withEvents(app.db)
    .where("event.message_id", "=", message.id)
    .orderBy("delivery.id", "desc")
    .limit(MAX_ABOUT_MESSAGE)
    .execute();
  return rows.map((row) => Object.assign(viewDelivery(app, row), { endpoint_id: row.endpoint_id }));
}

/** Sends a delivery again, with as many attempts as a new one has. One that waits for its next attempt is tried now, and that counts. */
export async function retryDelivery(
  app: App,
  user: UserRow,
  { id, delivery_id }: { id: string; delivery_id: string },
): Promise<DeliveryView> {
  return app.write(async (tx) => {
    const endpoint = await ownEndpoint(tx, user, id);
    const row = await recent(app, tx, endpoint).where("delivery.id", "=", delivery_id).executeTakeFirst();
    if (!row) throw noDelivery();
    refuseDisabled(endpoint);
    if (row.status === "pending" && !waitsForNext(app, row))
      throw new AppError("conflict", "This delivery is being tried just now.", {
        fix: "Wait for the outcome of this attempt.",
      });
    const again = row.status === "pending" ? { next_attempt_at: app.now() } : anew(app, endpoint);
    await tx.updateTable("webhook_deliveries").set(again).where("id", "=", row.id).execute();
    await attemptLater(app, tx, endpoint, again.next_attempt_at);
    return viewDelivery(app, { ...row, ...again });
  });
}

/** The most deliveries that one step of a replay changes. */
const ROWS = 200;

/**
 * Sends all deliveries again that have failed since a time, but for tests, in the order in which they were made. Each
 * step is committed by itself. A delivery that fails again meanwhile is not sent once more.
 */
export async function replayFailed(
  app: App,
  user: UserRow,
  { id, since }: { id: string; since: number },
): Promise<{ replayed: number }> {
  let [replayed, last] = [0, ""];
  await takeTurns(endlessShift(app), async (tx) => {
    const endpoint = await ownEndpoint(tx, user, id);
    refuseDisabled(endpoint);
    const found = await failedAfter(tx, { endpoint_id: endpoint.id, last });
    const after = Math.max(since, app.calmNow() - LISTED_SECONDS);
    const ids = found.filter((row) => row.livemode === 1 && row.created >= after).map((row) => row.id);
    if (ids.length > 0) {
      const again = anew(app, endpoint);
      await tx.updateTable("webhook_deliveries").set(again).where("id", "in", ids).execute();
      await attemptLater(app, tx, endpoint, again.next_attempt_at);
    }
    replayed += ids.length;
    last = found.at(-1)?.id ?? last;
    return found.length === ROWS;
  });
  return { replayed };
}

const failedAfter = prepared((db, key: { endpoint_id: string; last: string }) =>
  db
    .selectFrom("webhook_deliveries as delivery")
    .innerJoin("events as event", "event.id", "delivery.event_id")
    .select(["delivery.id", "delivery.created", "event.livemode"])
    .where("delivery.endpoint_id", "=", key.endpoint_id)
    .where("delivery.status", "=", "failed")
    // Only waiting deliveries have one; without it the index has the rows in the order of their ids.
    .where("delivery.next_attempt_at", "is", null)
    .where("delivery.id", ">", key.last)
    .orderBy("delivery.id")
    .limit(ROWS),
);

export function viewDelivery(app: App, row: ShownRow) {
  return {
    id: row.id,
    event_id: row.event_id,
    event_type: row.event_type,
    message_id: row.message_id,
    livemode: row.livemode === 1,
    status: row.status,
    attempts: row.attempts,
    max_attempts: app.config.webhooks.backoff.length,
    response_status: row.response_status,
    response_body: row.response_body,
    error: row.error,
    duration_ms: row.duration_ms,
    // A delivery that waits for another attempt goes to where the endpoint is now.
    url: row.status === "pending" ? row.endpoint_url : row.url,
    created: row.created,
    last_attempt_at: row.last_attempt_at,
    next_attempt_at: row.next_attempt_at,
    delivered_at: row.delivered_at,
  };
}

function recent(app: App, db: Db, endpoint: WebhookEndpointRow) {
  return withEvents(db)
    .where("delivery.endpoint_id", "=", endpoint.id)
    .where("delivery.created", ">=", app.calmNow() - LISTED_SECONDS);
}

function withEvents(db: Db) {
  return db
    .selectFrom("webhook_deliveries as delivery")
    .innerJoin("events as event", "event.id", "delivery.event_id")
    .innerJoin("webhook_endpoints as endpoint", "endpoint.id", "delivery.endpoint_id")
    .selectAll("delivery")
    .select("endpoint.url as endpoint_url")
    .select(["event.type as event_type", "event.message_id", "event.livemode"]);
}

function noDelivery(): AppError {
  return new AppError("not_found", "There is no such delivery.");
}

function refuseDisabled({ enabled }: WebhookEndpointRow): void {
  if (enabled === 1) return;
  throw new AppError("conflict", "This endpoint is switched off, so nothing is sent to it.", {
    fix: "Switch it on first (`PATCH /v1/webhooks/{id}` with `enabled`).",
  });
}

/** The columns of a delivery of which nothing has been tried yet, at the present address of its endpoint. */
function anew(app: App, { url }: WebhookEndpointRow) {
  return {
    status: "pending",
    attempts: 0,
    response_status: null,
    response_body: null,
    error: null,
    duration_ms: null,
    url,
    last_attempt_at: null,
    next_attempt_at: firstAttempt(app),
    delivered_at: null,
  } satisfies Partial<WebhookDeliveryRow>;
}
