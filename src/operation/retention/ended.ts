import type { Expression, ExpressionBuilder, ExpressionWrapper, SqlBool } from "kysely";
import { isEventNamed, isMessageNamed, isReturnNamed } from "../../db/job-keys.ts";
import type { Schema } from "../../db/schema.ts";

/**
 * Whether a message had ended at `before`, and so had all mails that answer it, and nobody is still to be told anything of
 * it, and no schedule has it worked on: it will never be worked on again.
 */
export function endedBefore(
  eb: ExpressionBuilder<Schema, "messages">,
  before: number,
): ExpressionWrapper<Schema, "messages", SqlBool> {
  const end = eb.fn.coalesce("messages.completed", "messages.created");
  const answers = eb
    .selectFrom("outgoing_mails")
    .select("outgoing_mails.id")
    .whereRef("outgoing_mails.message_id", "=", "messages.id")
    .where((mail) =>
      mail.or([mail("completed", "is", null), mail("completed", ">=", before), isReturnNamed(mail)]),
    );
  const news = eb
    .selectFrom("events")
    .select("events.id")
    .whereRef("events.message_id", "=", "messages.id")
    .where(isUntold);
  const schedules = eb
    .selectFrom("schedules")
    .select("schedules.id")
    .whereRef("schedules.message_id", "=", "messages.id")
    .where("schedules.status", "!=", "ended");
  return eb.and([
    eb("messages.state", "!=", "received"),
    eb(end, "<", before),
    eb.not(eb.or([eb.exists(answers), eb.exists(news), eb.exists(schedules), isMessageNamed(eb)])),
  ]);
}

/** Whether an event waits: for its deliveries, one of which may still be tried, or for the answer that it tells of. */
export function isUntold(eb: ExpressionBuilder<Schema, "events">): Expression<SqlBool> {
  const tried = eb
    .selectFrom("webhook_deliveries")
    .select("webhook_deliveries.id")
    .whereRef("webhook_deliveries.event_id", "=", "events.id")
    .where("webhook_deliveries.status", "=", "pending");
  const answer = eb
    .selectFrom("outgoing_mails")
    .select("outgoing_mails.id")
    .whereRef("outgoing_mails.message_id", "=", "events.message_id")
    .whereRef("outgoing_mails.event_id", "=", "events.id")
    .where("outgoing_mails.completed", "is", null);
  return eb.or([eb.exists(tried), eb.exists(answer), isEventNamed(eb)]);
}
