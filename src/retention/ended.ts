import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { Schema } from "../db/schema.ts";

/** Whether a message had ended at `before`, and so had all mails that answer it: it will never be worked on again. */
export function endedBefore(eb: ExpressionBuilder<Schema, "messages">, before: number): Expression<SqlBool> {
  const end = eb.fn.coalesce("messages.completed", "messages.created");
  const answers = eb
    .selectFrom("outgoing_mails")
    .select("outgoing_mails.id")
    .whereRef("outgoing_mails.message_id", "=", "messages.id")
    .where((mail) => mail.or([mail("completed", "is", null), mail("completed", ">=", before)]));
  return eb.and([eb("messages.state", "!=", "received"), eb(end, "<", before), eb.not(eb.exists(answers))]);
}
