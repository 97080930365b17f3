import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import { jsonTexts } from "../../db/json.ts";
import { prepared } from "../../db/prepared.ts";
import type { EventRow, WebhookDeliveryRow, WebhookEndpointRow } from "../../db/schema.ts";
import type { AttemptOutcome } from "./post-event.ts";

/** After the time-out: when an attempt whose outcome was never written, because the server died, is made again. */
const REDO_SECONDS = 15;
const JITTER = 0.1;

/** A delivery of which an attempt is due. */
interface Due extends Pick<WebhookDeliveryRow, "id" | "attempts" | "last_attempt_at"> {
  event_id: EventRow["id"];
  type: EventRow["type"];
  body: string;
  /** Bytes of the body. */
  size: number;
  livemode: number;
}

/**
 * A delivery with its attempt counted. If its owner has it sent again meanwhile, the outcome does not count: `attempt`
 * and `claimed_at` tell which attempt the row is about.
 */
export interface Claim extends Due {
  /** From 1. */
  attempt: number;
  claimed_at: number;
  /** Set if it was claimed again since, perhaps in the same second. */
  superseded: boolean;
}

export interface Made {
  claim: Claim;
  outcome: AttemptOutcome;
}

/**
 * How many deliveries may be claimed, and how many bytes they may have. With `at_least` 1 the first one may, however
 * large it is.
 */
interface Room {
  limit: number;
  bytes: number;
  at_least: 0 | 1;
}

/** Claims deliveries that are due. Their attempts count from now on, whatever happens. */
export async function claimDue(
  app: App,
  tx: Db,
  { endpoint, room }: { endpoint: WebhookEndpointRow; room: Room },
): Promise<Claim[]> {
  const all = { endpoint_id: endpoint.id, now: app.now(), limit: room.limit };
  const sizes = await dueSizes(tx, all);
  const key = { ...all, limit: countFitting(sizes, room) };
  if (key.limit === 0) return [];
  const due = await dueDeliveries(tx, key);
  const redo = redoAfter(app, key.now);
  const max = attemptsOf(app);
  await beginAttempts(tx, { ...key, redo, max, url: endpoint.url });
  return due.map((one) =>
    Object.assign(one, {
      attempt: Math.min(one.attempts + 1, max),
      claimed_at: key.now,
      superseded: false,
    }),
  );
}

/**
 * Keeps deliveries that are on their way from being due. That may be for longer than an attempt may take: if the
 * process stood still, the answer may lie unread in the socket.
 */
export async function keepOnTheirWay(app: App, tx: Db, claims: Claim[]): Promise<void> {
  const now = app.now();
  const overdue = claims.filter((claim) => !claim.superseded && redoAfter(app, claim.claimed_at) <= now);
  if (overdue.length === 0) return;
  const ids = JSON.stringify(overdue.map(({ id }) => id));
  await putOffRedo(tx, { ids, now, redo: redoAfter(app, now) });
}

function redoAfter(app: App, claimed_at: number): number {
  return claimed_at + app.config.webhooks.timeout_seconds + REDO_SECONDS;
}

/** Whether a delivery has been tried, and no attempt of it can be on its way or is due. */
export function waitsForNext(
  app: App,
  { last_attempt_at, next_attempt_at }: Pick<WebhookDeliveryRow, "last_attempt_at" | "next_attempt_at">,
): boolean {
  if (last_attempt_at === null || next_attempt_at === null) return false;
  return next_attempt_at > Math.max(app.now(), redoAfter(app, last_attempt_at));
}

/** Puts back a delivery whose attempt was not begun after all. */
export async function giveBack(app: App, tx: Db, claim: Claim): Promise<void> {
  const { id, attempt, claimed_at, attempts, last_attempt_at } = claim;
  await undoBegin(tx, { id, attempt, claimed_at, attempts, last_attempt_at, now: app.now() });
}

/**
 * Stores the outcomes of attempts, and returns those that count, in order. None counts once its delivery is sent again;
 * of a cancelled delivery, only a success does. A turn may have hundreds of successes, so one statement stores all that
 * are alike.
 */
export async function recordOutcomes(app: App, tx: Db, endpoint_id: string, made: Made[]): Promise<Made[]> {
  const rows = made.filter(({ claim }) => !claim.superseded);
  const delivered = rows.filter(({ outcome }) => outcome.delivered);
  const recorded: { id: string }[] = [];
  for (const alike of Map.groupBy(delivered, likeness).values()) {
    const [one] = alike;
    const ids = JSON.stringify(alike.map(({ claim }) => claim.id));
    if (one) recorded.push(...(await markDelivered(tx, { ...columnsOf(one), ids, now: app.now() })));
  }
  for (const one of rows.filter(({ outcome }) => !outcome.delivered)) {
    const is_over = isExhausted(app, one);
    const status = is_over ? ("failed" as const) : ("pending" as const);
    const next_attempt_at = is_over ? null : nextAttempt(app, one);
    recorded.push(...(await markFailed(tx, { ...columnsOf(one), status, next_attempt_at })));
  }
  const ids = new Set(recorded.map(({ id }) => id));
  const counted = rows.filter(({ claim }) => ids.has(claim.id));
  afterCommit(tx, () => tellFailed(app, endpoint_id, counted));
  return counted;
}

function tellFailed(app: App, endpoint_id: string, made: Made[]): void {
  for (const one of made) {
    const { claim, outcome } = one;
    if (outcome.delivered) continue;
    const { event_id, type, attempt, id: delivery_id } = claim;
    const { error, duration_ms: ms } = outcome;
    const words = isExhausted(app, one) ? "a webhook has failed" : "a webhook will be tried again";
    app.log.info({ endpoint_id, delivery_id, event_id, type, attempt, error, ms }, words);
  }
}

/** Outcomes with the same likeness can be written down by one statement. */
function likeness({ claim, outcome }: Made): string {
  const { response_status, response_body, duration_ms } = outcome;
  return JSON.stringify([claim.attempt, claim.claimed_at, response_status, duration_ms, response_body]);
}

function columnsOf({ claim, outcome }: Made) {
  const { id, attempt, claimed_at } = claim;
  const { response_status, response_body, error, duration_ms } = outcome;
  return { id, attempt, claimed_at, response_status, response_body, error, duration_ms };
}

/** Fails deliveries without an attempt left of whose last one nothing is known. */
export async function failInterrupted(app: App, tx: Db, endpoint_id: string): Promise<void> {
  await tx
    .updateTable("webhook_deliveries")
    .set({ status: "failed", error: "interrupted", next_attempt_at: null })
    .where("endpoint_id", "=", endpoint_id)
    .where("status", "=", "pending")
    .where("attempts", ">=", attemptsOf(app))
    .execute();
}

/** Whether a failed attempt was the last one. */
export function isExhausted(app: App, { claim, outcome }: Made): boolean {
  return !outcome.delivered && claim.attempt >= attemptsOf(app);
}

/** When a delivery that is queued now is tried first. */
export function firstAttempt(app: App): number {
  return dueAfter(app, Math.round(app.config.webhooks.backoff[0] ?? 0));
}

/** When the next attempt at an endpoint is due; null when none waits. */
export async function earliestDue(db: Db, endpoint_id: string): Promise<number | null> {
  const [first] = await earliestPending(db, { endpoint_id });
  return first?.next_attempt_at ?? null;
}

function attemptsOf(app: App): number {
  return app.config.webhooks.backoff.length;
}

/**
 * When a failed delivery is tried next. The times are spread a little, so that deliveries that failed together do not
 * come back together.
 */
function nextAttempt(app: App, { claim, outcome }: Made): number {
  if (outcome.again_at_once) return dueAfter(app, 0);
  const wait = app.config.webhooks.backoff[claim.attempt] ?? 0;
  const spread = Math.round(wait * (1 - JITTER + 2 * JITTER * Math.random()));
  return dueAfter(app, Math.max(spread, outcome.retry_after ?? 0));
}

/** A wait of 0 is not rounded up to the next second. */
function dueAfter(app: App, seconds: number): number {
  return seconds === 0 ? app.now() : app.after(seconds);
}

function countFitting(due: { size: number }[], { bytes, at_least }: Room): number {
  let sum = 0;
  const over = due.findIndex(({ size }) => (sum += size) > bytes);
  return over < 0 ? due.length : Math.max(at_least, over);
}

interface DueKey {
  endpoint_id: string;
  now: number;
  limit: number;
}

const dueSizes = prepared((db, key: DueKey) => dueWithEvent(db, key));

const dueDeliveries = prepared((db, key: DueKey) =>
  dueWithEvent(db, key).select([
    "delivery.id",
    "delivery.attempts",
    "delivery.last_attempt_at",
    "delivery.event_id",
    "event.type",
    "event.body",
    "event.livemode",
  ]),
);

/** The size alone does not read the body. */
function dueWithEvent(db: Db, key: DueKey) {
  return dueOf(db, key)
    .innerJoin("events as event", "event.id", "delivery.event_id")
    .select(({ fn }) => fn<number>("octet_length", ["event.body"]).as("size"));
}

/** Counts the attempts of all that are due in one statement: in the same transaction, they are those that were read. */
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

/** `ids`: a JSON array. What its owner has sent anew meanwhile has no attempt yet. */
const putOffRedo = prepared((db, put_off: { ids: string; now: number; redo: number }) =>
  db
    .updateTable("webhook_deliveries")
    .set({ next_attempt_at: put_off.redo })
    .where("id", "in", db.selectFrom(jsonTexts(put_off.ids).as("listed")).select("listed.value"))
    .where("status", "=", "pending")
    .where("attempts", ">", 0)
    .where("next_attempt_at", "<=", put_off.now),
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

type Claimed = Pick<Claim, "id" | "attempt" | "claimed_at">;

const undoBegin = prepared(
  (db, undo: Claimed & Pick<Due, "attempts" | "last_attempt_at"> & { now: number }) =>
    db
      .updateTable("webhook_deliveries")
      .set({
        attempts: undo.attempts,
        last_attempt_at: undo.last_attempt_at,
        next_attempt_at: undo.now,
      })
      .where("id", "=", undo.id)
      .where("attempts", "=", undo.attempt)
      .where("last_attempt_at", "=", undo.claimed_at)
      .where("status", "=", "pending"),
);

type Recorded = Claimed &
  Pick<WebhookDeliveryRow, "response_status" | "response_body" | "error" | "duration_ms">;

/** `ids`: a JSON array. */
const markDelivered = prepared((db, row: Omit<Recorded, "id"> & { ids: string; now: number }) =>
  db
    .updateTable("webhook_deliveries")
    .set({
      status: "delivered",
      response_status: row.response_status,
      response_body: row.response_body,
      error: null,
      duration_ms: row.duration_ms,
      next_attempt_at: null,
      delivered_at: row.now,
    })
    .where("id", "in", db.selectFrom(jsonTexts(row.ids).as("listed")).select("listed.value"))
    .where("attempts", "=", row.attempt)
    .where("last_attempt_at", "=", row.claimed_at)
    .returning("id"),
);

/** A delivery that was called off meanwhile stays so. */
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
    .where("attempts", "=", row.attempt)
    .where("last_attempt_at", "=", row.claimed_at)
    .where("status", "=", "pending")
    .returning("id"),
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
