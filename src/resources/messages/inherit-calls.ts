import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow } from "../../db/schema.ts";
import { isOfStrangers } from "../../db/strangers.ts";

/**
 * Has a message begin with what was called for the same work before, by messages that failed: by the same mail, or by what
 * it tries again. None of those calls is made a second time.
 */
export async function inheritCalls(tx: Db, row: MessageRow): Promise<void> {
  // What others send may use no tool, and is told nothing of what tools have said.
  if (isOfStrangers({ ...row, retry_of: null })) return;
  const { id, inbox_id, dedupe_key, retry_of } = row;
  await copyCalls(tx, { id, inbox_id, dedupe_key, retry_of });
}

const copyCalls = prepared((db, heir: Pick<MessageRow, "id" | "inbox_id" | "dedupe_key" | "retry_of">) =>
  db
    .insertInto("tool_calls")
    .columns(["message_id", "fingerprint", "outcome", "created"])
    .expression(
      db
        .selectFrom("messages")
        .innerJoin("tool_calls as known", "known.message_id", "messages.id")
        .select((eb) => [eb.val(heir.id).as("message_id"), "fingerprint", "outcome", "known.created"])
        .where("messages.state", "=", "failed")
        .where((eb) =>
          eb.or([
            eb.and([eb("inbox_id", "=", heir.inbox_id), eb("dedupe_key", "=", heir.dedupe_key)]),
            eb("messages.id", "=", heir.retry_of),
            eb("retry_of", "=", heir.retry_of),
          ]),
        )
        .orderBy(db.dynamic.ref("known.rowid")),
    )
    .onConflict((conflict) => conflict.doNothing()),
);
