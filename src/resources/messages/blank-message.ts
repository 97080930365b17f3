import type { App } from "../../app.ts";
import type { MessageRow } from "../../db/schema.ts";
import { millisecondsOf } from "../../lib/first-id.ts";

/** The row of a new message, before anything is known of it. */
export function blankMessage(
  app: App,
  inbox: Pick<MessageRow, "user_id"> & { id: string | null },
): MessageRow {
  const id = app.newId();
  return {
    id,
    user_id: inbox.user_id,
    inbox_id: inbox.id,
    conversation_id: null,
    source: "email",
    state: "received",
    reason: null,
    error: null,
    authority: "unauthenticated",
    sender: null,
    subject: null,
    instruction: null,
    command: null,
    result: "",
    steps: "[]",
    input_tokens: null,
    output_tokens: null,
    cost: null,
    model: null,
    credits_charged: 0,
    auth: null,
    no_reply_reason: null,
    raw_mail_id: null,
    rfc_message_id: null,
    body_hash: null,
    dedupe_key: null,
    duplicates: 0,
    hop: 0,
    reply_status: "none",
    reply_error: null,
    // The moment is that of the id, because lists look for times by ids; unless the clock was set back.
    created: Math.min(app.now(), Math.floor(millisecondsOf(id) / 1_000)),
    accepted_ms: app.nowMs(),
    completed: null,
    duration_ms: null,
    retry_of: null,
    tags: "[]",
    metadata: "{}",
    vouched: 1,
    mails: 1,
    deleted_at: null,
    redone: 0,
    rules: "{}",
    schedule_id: null,
    approval_id: null,
    brought: null,
    key_id: null,
    contexts: "[]",
    read_from: null,
    from_memory: 0,
  };
}
