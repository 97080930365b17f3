import type { User } from "../../src/resources/accounts/accounts.ts";
import { insertRow } from "../../src/db/prepared.ts";
import type { ConversationRow, MessageRow } from "../../src/db/schema.ts";
import { blankMessage } from "../../src/resources/messages/blank-message.ts";
import type { TestApp } from "../support/app.ts";

/** Stores messages as they would be after some time; each has the id of the moment it says it was accepted in. */
export async function storeMessages(
  t: TestApp,
  user: User,
  messages: Partial<MessageRow>[],
): Promise<MessageRow[]> {
  // One for all: each call takes an id, and ids of one moment are in order only if they are made in a row.
  const blank = blankMessage(t.app, { id: null, user_id: user.id });
  const rows = messages.map((given) => {
    const created = given.created ?? t.app.now();
    const moment = { id: idAt(created), accepted_ms: created * 1_000, created };
    return { ...blank, state: "done" as const, authority: "owner" as const, ...moment, ...given };
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
