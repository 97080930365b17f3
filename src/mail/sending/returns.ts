import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { returnsKey } from "../../db/job-keys.ts";
import type { OutgoingMailRow } from "../../db/schema.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import { enqueue } from "../../jobs/queue.ts";

/** How long bounces are collected for one letter. */
const GATHER_SECONDS = 300;

/**
 * Enqueues a letter that tells the owner about a bounced answer, or about a failure that nobody was told of; at most
 * one a day (UTC).
 */
export async function tellOfReturnLater(
  app: App,
  tx: Db,
  mail: Pick<OutgoingMailRow, "id" | "user_id" | "kind" | "message_id">,
): Promise<void> {
  const { user_id, message_id } = mail;
  // Bounces of letters are not reported: two such letters would cause each other for ever. Of a forward tells
  // whoever writes its outcome on the message.
  if (message_id === null || mail.kind === "forward") return;
  if (mail.kind === "notice") {
    if (await wasRefused(tx, message_id)) return;
    return tellOwnerLater(app, tx, { user_id, kind: "failure_untold", message_id });
  }
  await tx
    .insertInto("undelivered_answers")
    .values({ outgoing_id: mail.id, user_id })
    .onConflict((conflict) => conflict.column("outgoing_id").doNothing())
    .execute();
  const run_at = app.after(GATHER_SECONDS);
  await enqueue(app, tx, {
    kind: "mail_returns",
    payload: { user_id },
    dedupe_key: returnsKey(user_id),
    run_at,
  });
}

/**
 * Has the owner told of a request for consent whose letter came back: the letter belongs to no message, so nothing
 * else shows it, and the request would lapse unseen.
 */
export async function tellOfLostLetter(
  app: App,
  tx: Db,
  { user_id, message_id, rfc_message_id }: Pick<OutgoingMailRow, "user_id" | "message_id" | "rfc_message_id">,
): Promise<void> {
  if (message_id !== null) return;
  const request = await tx
    .updateTable("approvals")
    .set({ letter_id: null })
    .where("user_id", "=", user_id)
    .where("letter_id", "=", rfc_message_id)
    .returning(["id", "state"])
    .executeTakeFirst();
  if (request?.state !== "pending") return;
  app.log.info({ approval_id: request.id }, "the letter that asks for consent to a call did not arrive");
  await tellOwnerLater(app, tx, { user_id, kind: "approvals_waiting" });
}

/** Whether a message was never taken: that its owner has wanted. */
async function wasRefused(tx: Db, id: string): Promise<boolean> {
  const message = tx.selectFrom("messages").select("id").where("id", "=", id).where("state", "=", "rejected");
  return (await message.executeTakeFirst()) !== undefined;
}
