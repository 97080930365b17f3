import { type Expression, type ExpressionBuilder, sql, type SqlBool } from "kysely";
import type { Schema } from "./schema.ts";

/** The `dedupe_key` of a job that tells of an event: by it retention finds that the event waits, see `isEventNamed`. */
export function eventKey(id: string): string {
  return `event:${id}`;
}

/** The same of a job of a kind that says something about a message. */
export function messageKey(id: string, kind: string): string {
  return `message:${id} ${kind}`;
}

/** The same of the job that tells an owner of the answers that came back. */
export function returnsKey(user_id: string): string {
  return `returns ${user_id}`;
}

/** Whether a job is to tell of an event; one that was given up has no key any more. */
export function isEventNamed(eb: ExpressionBuilder<Schema, "events">): Expression<SqlBool> {
  return eb.exists(
    eb
      .selectFrom("jobs")
      .select("jobs.id")
      .where("jobs.dedupe_key", "=", sql<string>`${eventKey("")} || events.id`),
  );
}

/** Whether a job is to say something about a message: of whatever kind, all such keys are in one range of the index. */
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

/** Whether the owner is still to be told that a mail came back. */
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
