import type { ExpressionBuilder } from "kysely";
import type { Schema } from "../../db/schema.ts";

/** Statuses of answers that did not reach whom they were for. */
const LOST = ["bounced", "suppressed"] as const;

/**
 * Whether an answer to a message was mailed to its sender, or is on its way there, as a condition of a query. What came of any
 * other message is its owner's alone: a rule may have withheld it, or the inbox does not answer.
 */
export function isAnswered(eb: ExpressionBuilder<Schema, "messages">) {
  const answers = eb
    .selectFrom("outgoing_mails")
    .select("outgoing_mails.id")
    .whereRef("outgoing_mails.message_id", "=", "messages.id")
    .whereRef("outgoing_mails.envelope_to", "=", "messages.sender")
    .where("outgoing_mails.kind", "=", "reply")
    .where("outgoing_mails.status", "not in", LOST);
  return eb.exists(answers);
}
