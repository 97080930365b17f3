import { sql } from "kysely";
import type { Db } from "./database.ts";
import { jsonMember } from "./json.ts";

/** Selects what the unfinished jobs of a kind are for; '' for a job whose payload is damaged. */
const jobsFor = (kind: "route_message" | "send_mail", name: "message_id" | "outgoing_id") => sql`
    select case when json_valid(payload) then coalesce(json_extract(payload, ${`$.${name}`}), '') else '' end
    from jobs where kind = ${kind} and status in ('pending', 'running')`;

/**
 * Returns at most `limit` ids of messages that need a job and have none, of one account or, with null, of all. An index
 * finds what each account has waiting; jobs are read once, and only if anything waits.
 */
export async function orphanMessages(tx: Db, user_id: string | null, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select messages.id from users
    cross join messages on messages.user_id = users.id and state <> 'done' and state = 'received'
    where users.deleted_at is null and (${user_id} is null or users.id = ${user_id})
      and messages.id not in (${jobsFor("route_message", "message_id")})
    order by messages.id limit ${limit}`.execute(tx);
  return rows.map(({ id }) => id);
}

/** The condition that a job sends entrusted mail: mail of which somebody was told that it has been accepted. */
export const IS_ENTRUSTED = sql<boolean>`(kind = 'send_mail'
  and case when json_valid(payload) then coalesce(json_extract(payload, '$.entrusted'), 0) else 0 end)`;

/** Selects the ids of entrusted mails that are still to be sent, or that bounced. */
export const allEntrustedMails = () => sql<string>`(
    select coalesce(json_extract(payload, '$.outgoing_id'), '')
    from jobs where kind = 'send_mail' and status in ('pending', 'running', 'dead') and ${IS_ENTRUSTED})`;

const givenUp = (kind: "route_message" | "send_mail", name: "message_id" | "outgoing_id") => sql<string>`(
    select coalesce(${jsonMember("payload", name)}, '') from jobs where kind = ${kind} and status = 'dead')`;

/** Selects the ids of outgoing mails that were given up; the operator may send them again. */
export const mailsGivenUp = () => givenUp("send_mail", "outgoing_id");

/** Selects the ids of messages whose run was given up; it may be started again. */
export const messagesGivenUp = () => givenUp("route_message", "message_id");

/** Returns at most `limit` ids of an account's unsent mails that have no job. */
export async function orphanMails(tx: Db, user_id: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from outgoing_mails
    where user_id = ${user_id} and completed is null and id not in (${jobsFor("send_mail", "outgoing_id")})
    order by id limit ${limit}`.execute(tx);
  return rows.map(({ id }) => id);
}

/**
 * For each kind of job, the rows that a retry would need. Without them a job that was given up cannot be retried, and
 * the personal data in its payload is of no use.
 */
const LEFT_OF = [
  ["send_mail", "outgoing_id", "outgoing_mails where raw is not null and status <> 'sent' and"],
  ["route_message", "message_id", "messages where"],
  ["tell_failure", "message_id", "messages where"],
  ["fan_out_event", "event_id", "events where"],
] as const;

/**
 * Returns at most `limit` ids of jobs that were given up and whose rows are gone. A job whose payload is damaged is
 * left for the operator.
 */
export async function deadJobsWithoutRows(tx: Db, limit: number): Promise<string[]> {
  const found = LEFT_OF.map(([kind, name, left]) => {
    const named = jsonMember("jobs.payload", name);
    return sql`select id from jobs where kind = ${kind} and status = 'dead' and ${named} is not null
      and not exists (select 1 from ${sql.raw(left)} id = ${named})`;
  });
  const { rows } = await sql<{ id: string }>`${sql.join(found, sql` union all `)} limit ${limit}`.execute(tx);
  return rows.map(({ id }) => id);
}
