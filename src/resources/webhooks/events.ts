import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { eventKey } from "../../db/job-keys.ts";
import { insertRow, remembered } from "../../db/prepared.ts";
import type { EventRow, EventType } from "../../db/schema.ts";
import { enqueue } from "../../jobs/queue.ts";
import { sortableId } from "../../lib/sortable-id.ts";

export const EVENT_TYPES: EventType[] = [
  "message.received",
  "message.completed",
  "message.failed",
  "message.skipped",
];

/** How much of a result an event carries. */
const MAX_RESULT_CHARS = 200_000;

/** A message as events show it. */
export interface EventObject {
  message_id: string;
  conversation_id: string | null;
  source: string;
  status: string;
  result: string;
  error: string | null;
  usage: { input_tokens: number; output_tokens: number } | null;
  subject: string | null;
  created: number;
  inbox_id: string | null;
  sender: string | null;
  tags: string[];
  /** Files that the run made, as its result shows them. */
  attachments: object[];
  metadata: Record<string, string>;
}

export interface NewEvent {
  user_id: string;
  type: EventType;
  livemode: boolean;
  /** Made only where somebody is told of it. */
  object: () => Promise<EventObject>;
}

/**
 * Records an event in the transaction of what happened, and has it delivered. Returns its id; null for an account
 * without endpoints, which has nobody to tell. An event that is `held` is delivered once somebody enqueues
 * `fan_out_event` for it.
 */
export async function recordEvent(app: App, tx: Db, event: NewEvent, held = false): Promise<string | null> {
  const [endpoint] = await anyEndpoint(tx, { user_id: event.user_id });
  if (!endpoint) return null;
  const row = eventRow(app, { ...event, object: await event.object() });
  await insertRow(tx, "events", row);
  const { id: event_id } = row;
  if (!held)
    await enqueue(app, tx, { kind: "fan_out_event", payload: { event_id }, dedupe_key: eventKey(event_id) });
  return event_id;
}

/** An event with its body, which is what all endpoints get at all attempts. */
export function eventRow(
  app: App,
  { user_id, type, livemode, object }: Omit<NewEvent, "object"> & { object: EventObject },
): EventRow {
  const id = `evt_${sortableId(app.newId())}`;
  const created = app.now();
  const data = { object: withShortResult(object) };
  const body = JSON.stringify({ id, type, created, livemode, data });
  return { id, user_id, type, message_id: object.message_id, livemode: livemode ? 1 : 0, body, created };
}

function withShortResult(object: EventObject): EventObject & { result_truncated?: true } {
  if (object.result.length <= MAX_RESULT_CHARS) return object;
  // Half of a surrogate pair is no character.
  const result = object.result.slice(0, MAX_RESULT_CHARS).replace(/[\uD800-\uDBFF]$/, "");
  return { ...object, result, result_truncated: true };
}

const anyEndpoint = remembered((db, key: { user_id: string }) =>
  db
    .selectFrom("webhook_endpoints")
    .select("id")
    .where("user_id", "=", key.user_id)
    .where("deleted_at", "is", null)
    .limit(1),
);
