import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { MessageState, Schema } from "./schema.ts";

/** One at most of all that try the same message again may be in one of these states. */
export const UNDER_WAY_OR_DONE: MessageState[] = ["received", "done"];

/** Builds the condition that nobody has seen to a message since it ended: neither deleted it, nor had it tried again. */
export function isLeft(eb: ExpressionBuilder<Schema, "messages">): Expression<SqlBool> {
  const again = eb
    .selectFrom("messages as again")
    .select("again.id")
    .where("again.retry_of", "=", eb.fn.coalesce("messages.retry_of", "messages.id"))
    .where("again.state", "in", UNDER_WAY_OR_DONE);
  return eb.and([
    eb("messages.deleted_at", "is", null),
    eb("messages.redone", "=", 0),
    eb.not(eb.exists(again)),
  ]);
}
