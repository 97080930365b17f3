import { hasAuthority } from "./authority.ts";
import { noteRunEnd } from "../schedules/run-ends.ts";
import { tagsOf } from "./tags-of.ts";
import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { MessageRow } from "../../db/schema.ts";
import { type EventObject, recordEvent } from "../webhooks/events.ts";
import { attachmentsOf } from "./messages.ts";
import { metadataOf } from "./metadata.ts";
import { factsOf } from "./states.ts";
import { usageOf, viewAttachment } from "./view.ts";

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
  | "cost"
  | "subject"
  | "created"
  | "inbox_id"
  | "authority"
  | "sender"
  | "tags"
  | "command"
  | "metadata"
  | "schedule_id"
  | "reason"
  | "retry_of"
>;

/**
 * Records the new state of a message as an event, in the transaction that brings it about, and notifies open pages.
 * See `recordEvent` for `held` and for what is returned.
 */
export async function recordState(app: App, tx: Db, row: Told, held = false): Promise<string | null> {
  app.metrics.count("mailwright_messages_total", { source: row.source, state: row.state });
  afterCommit(tx, () => {
    app.changes.tell(row.user_id, row.id);
    // What may still be done about it is another thing now.
    if (row.retry_of !== null) app.changes.tell(row.user_id, row.retry_of);
  });
  await noteRunEnd(app, tx, row);
  // There is no such event of a call: its caller knows that it was accepted.
  if (row.state === "received" && row.source !== "email") return null;
  const { user_id, source } = row;
  const about = { user_id, type: factsOf(row.state).event, livemode: source !== "test" };
  return recordEvent(app, tx, { ...about, object: () => objectOf(tx, row) }, held);
}

async function objectOf(tx: Db, row: Told): Promise<EventObject> {
  const { id: message_id, conversation_id, source, result, error, subject, created, inbox_id } = row;
  const files =
    row.state === "received" ? [] : ((await attachmentsOf(tx, [message_id])).get(message_id) ?? []);
  return {
    message_id,
    conversation_id,
    source,
    status: factsOf(row.state).run,
    result,
    error,
    usage: usageOf(row),
    subject,
    created,
    inbox_id,
    sender: row.sender !== null && PLAIN_ADDRESS.test(row.sender) ? row.sender : null,
    // Tags of a stranger's mail are left out: the stranger chose the `+tag`.
    tags: hasAuthority(row) ? tagsOf(row) : [],
    attachments: files.filter(({ direction }) => direction === "out").map(viewAttachment),
    metadata: metadataOf(row),
  };
}

/** Addresses without quotes, between which a stranger could put any words. */
const PLAIN_ADDRESS = /^[^\s@"<>()\\]+@[^\s@"<>()\\]+$/;
