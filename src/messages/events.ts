import type { App } from "../app.ts";
import { afterCommit, type Db } from "../db/database.ts";
import type { EventType, MessageRow, MessageState } from "../db/schema.ts";
import { recordEvent } from "../webhooks/events.ts";
import { routingStatus, usageOf } from "./view.ts";

const TYPES: Record<MessageState, EventType> = {
  received: "message.received",
  done: "message.completed",
  failed: "message.failed",
  rejected: "message.failed",
  limited: "message.skipped",
  skipped: "message.skipped",
};

type Told = Pick<
  MessageRow,
  | "id"
  | "user_id"
  | "conversation_id"
  | "source"
  | "state"
  | "result"
  | "error"
  | "input_tokens"
  | "output_tokens"
  | "subject"
  | "created"
>;

/**
 * Writes down, as an event, what a message has come to, in the transaction that brings it there, and has those told who
 * look on. See `recordEvent` for
 * `held` and for what it gives.
 */
export async function recordState(app: App, tx: Db, row: Told, held = false): Promise<string | null> {
  app.metrics.count("mailwright_messages_total", { source: row.source, state: row.state });
  afterCommit(tx, () => app.changes.tell(row.user_id, row.id));
  // Who makes a call knows that it was accepted.
  if (row.state === "received" && row.source !== "email") return null;
  const { id: message_id, user_id, conversation_id, source, result, error, subject, created } = row;
  return recordEvent(
    app,
    tx,
    {
      user_id,
      type: TYPES[row.state],
      livemode: source !== "test",
      object: {
        message_id,
        conversation_id,
        source,
        status: routingStatus(row.state),
        result,
        error,
        usage: usageOf(row),
        subject,
        created,
      },
    },
    held,
  );
}
