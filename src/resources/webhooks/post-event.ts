import type { App } from "../../app.ts";
import type { EventRow, WebhookEndpointRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import type { HttpAnswer } from "../../net/http-connection.ts";
import { KeptConnectionError } from "../../net/poster.ts";
import { networkFault, retryAfterSeconds } from "../../net/responses.ts";
import { secretsOf } from "./secrets.ts";
import { sign } from "./signature.ts";

const CONNECT_MS = 5_000;
const MAX_ANSWER_BYTES = 65_536;
const MAX_KEPT_BYTES = 1_000;
/** Answers whose Retry-After counts. */
const WAIT_STATUSES = new Set([429, 503]);

const FAULTS: Record<string, string> = {
  timeout: "timeout",
  tls_error: "tls",
  blocked_address: "blocked_address",
};

export type AttemptEndpoint = Pick<WebhookEndpointRow, "id" | "url" | "sealed" | "old_secret_until">;

export interface Attempt {
  endpoint: AttemptEndpoint;
  event: Pick<EventRow, "id" | "type" | "body">;
  /** From 1. */
  attempt: number;
  /** The secrets, already opened by `openForAttempts`, for whoever makes many attempts. */
  secrets?: string[] | null;
  /** Set if no further attempt follows. */
  is_only?: boolean;
}

/** What came of an attempt, as a delivery shows it. */
export interface AttemptOutcome {
  delivered: boolean;
  response_status: number | null;
  /** The first kilobyte of the answer. */
  response_body: string | null;
  /** timeout, connection, tls, blocked_address, secret_unreadable, or http_ and the status; null for a delivery. */
  error: string | null;
  duration_ms: number;
  /** Seconds that the receiver asks us to wait. */
  retry_after: number | null;
  /**
   * Set if nobody can tell whether the request was read, and the other side is probably well: the next attempt need
   * not wait.
   */
  again_at_once: boolean;
}

/**
 * POSTs an event to an endpoint, signed for this moment. Whatever goes wrong on the way is an outcome; where this machine
 * could not even try, it throws NoHandlesError.
 */
export async function attemptOnce(app: App, work: Attempt): Promise<AttemptOutcome> {
  const made = await attempt(app, work);
  const outcome = made.delivered ? "delivered" : "failed";
  app.metrics.time("mailwright_webhook_seconds", { outcome }, made.duration_ms / 1_000);
  return made;
}

async function attempt(app: App, work: Attempt): Promise<AttemptOutcome> {
  const { endpoint, event, attempt: number, secrets = openForAttempts(app, endpoint) } = work;
  if (secrets === null) return { ...NO_ANSWER, error: "secret_unreadable", duration_ms: 0 };
  const started = performance.now();
  const took = (): number => Math.round(performance.now() - started);
  try {
    const answer = await app.poster.post({
      url: endpoint.url,
      headers: sign(secrets, { ...event, timestamp: Math.floor(app.wallMs() / 1_000), attempt: number }),
      body: event.body,
      timeout_ms: app.config.webhooks.timeout_seconds * 1_000,
      connect_ms: CONNECT_MS,
      max_bytes: MAX_ANSWER_BYTES,
      fresh: number > 1 || work.is_only === true,
    });
    return { ...outcomeOf(answer), duration_ms: took() };
  } catch (error) {
    const fault = networkFault(error);
    if (fault === null)
      app.log.error({ endpoint_id: endpoint.id, err: error }, "a webhook could not be sent");
    const again_at_once = error instanceof KeptConnectionError;
    const shown = FAULTS[fault?.code ?? ""] ?? "connection";
    return { ...NO_ANSWER, error: shown, again_at_once, duration_ms: took() };
  }
}

const NO_ANSWER = {
  delivered: false,
  response_status: null,
  response_body: null,
  retry_after: null,
  again_at_once: false,
};

/** Null when the secrets were sealed under another master key: then nothing can be sent until there is a new one. */
export function openForAttempts(app: App, endpoint: AttemptEndpoint): string[] | null {
  try {
    return secretsOf(app, endpoint);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

function outcomeOf({ status, headers, body }: HttpAnswer): Omit<AttemptOutcome, "duration_ms"> {
  const delivered = status >= 200 && status < 300;
  return {
    delivered,
    response_status: status,
    response_body: shownBody(body),
    error: delivered ? null : `http_${status}`,
    retry_after: WAIT_STATUSES.has(status) ? retryAfterSeconds(headers) : null,
    again_at_once: false,
  };
}

/** At most a kilobyte of UTF-8, without control characters; null for an empty one. */
function shownBody(body: Buffer): string | null {
  if (body.length === 0) return null;
  const text = new TextDecoder().decode(body.subarray(0, MAX_KEPT_BYTES));
  const clean = text.replaceAll(/[^\P{C}\n\t]/gu, "");
  // Half a character at the cut, and bytes that are no text, are replaced by characters that take more room.
  const bytes = Buffer.from(clean);
  return bytes.length <= MAX_KEPT_BYTES
    ? clean
    : new TextDecoder().decode(bytes.subarray(0, MAX_KEPT_BYTES)).replace(/(?<!\uFFFD)\uFFFD+$/, "");
}
