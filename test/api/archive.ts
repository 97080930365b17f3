import type { User } from "../../src/accounts/accounts.ts";
import { insertRow } from "../../src/db/prepared.ts";
import type { ConversationRow, MessageRow } from "../../src/db/schema.ts";
import type { TestApp } from "../support/app.ts";

/** Stores messages as they would be after some time; each has the id of the moment it says it was accepted in. */
export async function storeMessages(
  t: TestApp,
  user: User,
  messages: Partial<MessageRow>[],
): Promise<MessageRow[]> {
  const rows = messages.map((given) => {
    const created = given.created ?? t.app.now();
    return { ...BLANK, id: idAt(created), user_id: user.id, accepted_ms: created * 1_000, created, ...given };
  });
  await t.app.write(async (tx) => {
    for (const row of rows) await insertRow(tx, "messages", row);
  });
  return rows;
}

export async function storeConversations(
  t: TestApp,
  user: User,
  conversations: Partial<ConversationRow>[],
): Promise<ConversationRow[]> {
  const created = t.app.now();
  const rows = conversations.map((given) => ({
    id: Bun.randomUUIDv7(),
    user_id: user.id,
    inbox_id: null,
    subject: "A thread",
    turn_count: 1,
    latest_sender: null,
    snippet: "",
    last_at: created,
    created,
    ...given,
  }));
  await t.app.write(async (tx) => {
    for (const row of rows) await insertRow(tx, "conversations", row);
  });
  return rows;
}

/** An id of this second, greater than those of the same second before it. */
function idAt(second: number): string {
  return Bun.randomUUIDv7("hex", second * 1_000);
}

const BLANK: Omit<MessageRow, "id" | "user_id" | "accepted_ms" | "created"> = {
  inbox_id: null,
  conversation_id: null,
  source: "email",
  state: "done",
  reason: null,
  error: null,
  authority: "owner",
  sender: null,
  subject: null,
  instruction: null,
  command: null,
  result: "",
  steps: "[]",
  input_tokens: null,
  output_tokens: null,
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
  completed: null,
  duration_ms: null,
  retry_of: null,
  tags: "[]",
};
