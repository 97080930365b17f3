import { type Expression, type ExpressionBuilder, sql, type SqlBool } from "kysely";
import type { Schema } from "./schema.ts";

/**
 * Returns the `dedupe_key` of the job that announces an event. Retention finds by it that the event is still needed,
 * see `isEventNamed`.
 */
export function eventKey(id: string): string {
  return `event:${id}`;
}

/** Returns the `dedupe_key` of a job of the given kind that tells somebody about a message. */
export function messageKey(id: string, kind: string): string {
  return `message:${id} ${kind}`;
}

/** Returns the `dedupe_key` of the job that tells an owner about answers that bounced. */
export function returnsKey(user_id: string): string {
  return `returns ${user_id}`;
}

/** Returns the lane of the jobs that write letters of a kind to an owner. */
export function laneOfNotices({ user_id, kind }: { user_id: string; kind: string }): string {
  return `notice ${user_id} ${kind}`;
}

/** Builds the condition that a job is still to announce the event. A job that was given up has lost its key. */
export function isEventNamed(eb: ExpressionBuilder<Schema, "events">): Expression<SqlBool> {
  return eb.exists(
    eb
      .selectFrom("jobs")
      .select("jobs.id")
      .where("jobs.dedupe_key", "=", sql<string>`${eventKey("")} || events.id`),
  );
}

/**
 * Builds the condition that a job of any kind is to tell somebody about the message: all such keys lie in one range of
 * the index.
 */
export function isMessageNamed(eb: ExpressionBuilder<Schema, "messages">): Expression<SqlBool> {
  const prefix = sql<string>`'message:' || messages.id`;
  return eb.exists(
    eb
      .selectFrom("jobs")
      .select("jobs.id")
      .where("jobs.dedupe_key", ">", sql<string>`${prefix} || ' '`)
      .where("jobs.dedupe_key", "<", sql<string>`${prefix} || '!'`),
  );
}

/** Builds the condition that the owner is still to be told that the mail bounced. */
export function isReturnNamed(eb: ExpressionBuilder<Schema, "outgoing_mails">): Expression<SqlBool> {
  return eb.exists(
    eb
      .selectFrom("undelivered_answers")
      .innerJoin("jobs", (join) =>
        join.on("jobs.dedupe_key", "=", sql<string>`${returnsKey("")} || undelivered_answers.user_id`),
      )
      .select("jobs.id")
      .whereRef("undelivered_answers.outgoing_id", "=", "outgoing_mails.id"),
  );
}
