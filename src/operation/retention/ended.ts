import type { Expression, ExpressionBuilder, ExpressionWrapper, SqlBool } from "kysely";
import { isEventNamed, isMessageNamed, isReturnNamed } from "../../db/job-keys.ts";
import type { Schema } from "../../db/schema.ts";

/**
 * Builds the condition that a message is over: it and all answers to it had ended at `before`, nobody is still to be
 * told about it, no schedule has it worked on again, and no call of it waits for a consent or is being made.
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
  const requests = eb
    .selectFrom("approvals")
    .select("approvals.id")
    .whereRef("approvals.message_id", "=", "messages.id")
    // Whoever deletes a message wants nothing more done for it.
    .where("messages.deleted_at", "is", null)
    .where((request) =>
      request.or([
        request("state", "in", ["approved", "called"]),
        request.and([request("state", "=", "pending"), request("expires_at", ">=", before)]),
      ]),
    );
  return eb.and([
    eb("messages.state", "!=", "received"),
    eb(end, "<", before),
    eb.not(
      eb.or([
        eb.exists(answers),
        eb.exists(news),
        eb.exists(schedules),
        eb.exists(requests),
        isMessageNamed(eb),
      ]),
    ),
  ]);
}

/**
 * Builds the condition that an event is still needed: a delivery may be retried, or the answer it announces is not
 * sent.
 */
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
