import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { EventRow, WebhookDeliveryRow, WebhookEndpointRow } from "../db/schema.ts";
import type { AttemptOutcome } from "./attempt.ts";

/** After the time-out: when an attempt whose outcome was never written, because the server died, is made again. */
const REDO_SECONDS = 15;
const JITTER = 0.1;

/** A delivery of which an attempt is due, or being made. */
export interface Due extends Pick<WebhookDeliveryRow, "id" | "attempts" | "last_attempt_at"> {
  event_id: EventRow["id"];
  type: EventRow["type"];
  body: string;
  livemode: number;
}

export interface Made {
  due: Due;
  outcome: AttemptOutcome;
}

/** Takes up to `limit` deliveries that are due, each with its attempt counted: from now on it counts, whatever happens. */
export async function claimDue(
  app: App,
  tx: Db,
  { endpoint, limit }: { endpoint: WebhookEndpointRow; limit: number },
): Promise<Due[]> {
  const key = { endpoint_id: endpoint.id, now: app.now(), limit };
  const due = await dueDeliveries(tx, key);
  if (due.length === 0) return due;
  const redo = key.now + app.config.webhooks.timeout_seconds + REDO_SECONDS;
  await beginAttempts(tx, { ...key, redo, max: attemptsOf(app), url: endpoint.url });
  for (const one of due) one.attempts = Math.min(one.attempts + 1, attemptsOf(app));
  return due;
}

/** Gives back a delivery whose attempt was not begun after all. */
export async function giveBack(app: App, tx: Db, { id, attempts, last_attempt_at }: Due): Promise<void> {
  await undoBegin(tx, { id, attempts: attempts - 1, last_attempt_at, now: app.now() });
}

export async function recordOutcome(app: App, tx: Db, made: Made): Promise<void> {
  const { delivered, response_status, response_body, error, duration_ms } = made.outcome;
  const columns = { id: made.due.id, response_status, response_body, error, duration_ms };
  if (delivered) await markDelivered(tx, { ...columns, delivered_at: app.now() });
  else
    await markFailed(tx, {
      ...columns,
      status: isExhausted(app, made) ? "failed" : "pending",
      next_attempt_at: isExhausted(app, made) ? null : nextAttempt(app, made),
    });
}

/** Whether a failed attempt was the last one. */
export function isExhausted(app: App, { due, outcome }: Made): boolean {
  return !outcome.delivered && due.attempts >= attemptsOf(app);
}

/** When the next attempt at an endpoint falls due; null when none waits. */
export async function earliestDue(db: Db, endpoint_id: string): Promise<number | null> {
  const [first] = await earliestPending(db, { endpoint_id });
  return first?.next_attempt_at ?? null;
}

function attemptsOf(app: App): number {
  return app.config.webhooks.backoff.length;
}

/** Spread a little, so that what failed together does not come back together. */
function nextAttempt(app: App, { due, outcome }: Made): number {
  const wait = app.config.webhooks.backoff[due.attempts] ?? 0;
  const spread = Math.round(wait * (1 - JITTER + 2 * JITTER * Math.random()));
  return app.now() + Math.max(spread, outcome.retry_after ?? 0);
}

interface DueKey {
  endpoint_id: string;
  now: number;
  limit: number;
}

const dueDeliveries = prepared((db, key: DueKey) =>
  dueOf(db, key)
    .innerJoin("events as event", "event.id", "delivery.event_id")
    .select([
      "delivery.id",
      "delivery.attempts",
      "delivery.last_attempt_at",
      "delivery.event_id",
      "event.type",
      "event.body",
      "event.livemode",
    ]),
);

/** All that are due, in one statement; the same ones that were read, for it is the same transaction. */
const beginAttempts = prepared((db, begin: DueKey & { redo: number; max: number; url: string }) =>
  db
    .updateTable("webhook_deliveries")
    .set((eb) => ({
      attempts: eb.fn<number>("min", [eb("attempts", "+", 1), eb.val(begin.max)]),
      last_attempt_at: begin.now,
      next_attempt_at: begin.redo,
      url: begin.url,
    }))
    .where("id", "in", dueOf(db, begin).select("delivery.id")),
);

function dueOf(db: Db, key: DueKey) {
  return db
    .selectFrom("webhook_deliveries as delivery")
    .where("delivery.endpoint_id", "=", key.endpoint_id)
    .where("delivery.status", "=", "pending")
    .where("delivery.next_attempt_at", "<=", key.now)
    .orderBy("delivery.next_attempt_at")
    .orderBy("delivery.id")
    .limit(key.limit);
}

const undoBegin = prepared(
  (db, undo: { id: string; attempts: number; last_attempt_at: number | null; now: number }) =>
    db
      .updateTable("webhook_deliveries")
      .set({
        attempts: undo.attempts,
        last_attempt_at: undo.last_attempt_at,
        next_attempt_at: undo.now,
      })
      .where("id", "=", undo.id)
      .where("status", "=", "pending"),
);

type Recorded = Pick<
  WebhookDeliveryRow,
  "id" | "response_status" | "response_body" | "error" | "duration_ms"
>;

const markDelivered = prepared((db, row: Recorded & { delivered_at: number }) =>
  db
    .updateTable("webhook_deliveries")
    .set({
      status: "delivered",
      response_status: row.response_status,
      response_body: row.response_body,
      error: row.error,
      duration_ms: row.duration_ms,
      next_attempt_at: null,
      delivered_at: row.delivered_at,
    })
    .where("id", "=", row.id),
);

/** What was called off meanwhile stays so. */
const markFailed = prepared((db, row: Recorded & Pick<WebhookDeliveryRow, "status" | "next_attempt_at">) =>
  db
    .updateTable("webhook_deliveries")
    .set({
      status: row.status,
      response_status: row.response_status,
      response_body: row.response_body,
      error: row.error,
      duration_ms: row.duration_ms,
      next_attempt_at: row.next_attempt_at,
    })
    .where("id", "=", row.id)
    .where("status", "=", "pending"),
);

const earliestPending = prepared((db, key: { endpoint_id: string }) =>
  db
    .selectFrom("webhook_deliveries")
    .select("next_attempt_at")
    .where("endpoint_id", "=", key.endpoint_id)
    .where("status", "=", "pending")
    .orderBy("next_attempt_at")
    .limit(1),
);
