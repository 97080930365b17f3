import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow } from "../../db/schema.ts";
import { isCausedByStranger } from "../../db/strangers.ts";

/**
 * Copies the recorded tool calls of failed messages to a new message that does the same work: the same mail again, or a
 * retry. None of those calls is made a second time.
 */
export async function inheritCalls(tx: Db, row: MessageRow): Promise<void> {
  // Messages of strangers use no tool, and are told nothing of what tools have said.
  if (isCausedByStranger({ ...row, retry_of: null })) return;
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

/**
 * Copies the recorded tool calls of a message to others of the same work, in the transaction that deletes it. Returns
 * true if there are no others: then nobody knows which calls must not be made again.
 */
export async function losesCalls(tx: Db, message: Worked): Promise<boolean> {
  const { id, inbox_id, dedupe_key, authority, vouched } = message;
  if (message.state !== "failed" || (await callsOf(tx, { id })).length === 0) return false;
  const work = { id, first: message.retry_of ?? id, inbox_id, dedupe_key, authority, vouched };
  await handOn(tx, work);
  return (await leftOf(tx, work)).length === 0;
}

type Worked = Pick<
  MessageRow,
  "id" | "state" | "retry_of" | "inbox_id" | "dedupe_key" | "authority" | "vouched"
>;
type Work = Omit<Worked, "state" | "retry_of"> & { first: string };

const callsOf = prepared((db, key: { id: string }) =>
  db.selectFrom("tool_calls").select("fingerprint").where("message_id", "=", key.id).limit(1),
);

/** Selects another attempt of it, or the same mail that came again and was as much its author's. */
const leftOf = prepared((db, work: Work) => heirsOf(db, work).select("messages.id").limit(1));

const handOn = prepared((db, work: Work) =>
  db
    .insertInto("tool_calls")
    .columns(["message_id", "fingerprint", "outcome", "created"])
    .expression(
      heirsOf(db, work)
        .innerJoin("tool_calls as known", (join) => join.on("known.message_id", "=", work.id))
        .select(["messages.id as message_id", "fingerprint", "outcome", "known.created"])
        .orderBy(db.dynamic.ref("known.rowid")),
    )
    .onConflict((conflict) => conflict.doNothing()),
);

function heirsOf(db: Db, { id, first, inbox_id, dedupe_key, authority, vouched }: Work) {
  return db
    .selectFrom("messages")
    .where("messages.id", "!=", id)
    .where("messages.state", "in", ["received", "failed"])
    .where((eb) =>
      eb.or([
        eb("messages.id", "=", first),
        eb("retry_of", "=", first),
        eb.and([
          eb("inbox_id", "=", inbox_id),
          eb("dedupe_key", "=", dedupe_key),
          eb("authority", "=", authority),
          eb("vouched", "=", vouched),
        ]),
      ]),
    );
}
