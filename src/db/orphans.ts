import { sql } from "kysely";
import type { Db } from "./database.ts";
import { jsonMember } from "./json.ts";

/** The jobs of a kind that are still to be done, by what they are for. One that cannot be read is for nothing. */
const jobsFor = (kind: "route_message" | "send_mail", name: "message_id" | "outgoing_id") => sql`
    select case when json_valid(payload) then coalesce(json_extract(payload, ${`$.${name}`}), '') else '' end
    from jobs where kind = ${kind} and status in ('pending', 'running')`;

/**
 * Messages that wait for a job and have none, of an account or, with null, of all. Of each account what waits is found by
 * an index, and only where something does are the jobs looked at, once.
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

/** Whether a job carries what somebody was told had been taken. */
export const IS_ENTRUSTED = sql<boolean>`(kind = 'send_mail'
  and case when json_valid(payload) then coalesce(json_extract(payload, '$.entrusted'), 0) else 0 end)`;

/** The ids of mails that carry what somebody was told had been taken, and that are still to be sent or came back. */
export const allEntrustedMails = () => sql<string>`(
    select coalesce(json_extract(payload, '$.outgoing_id'), '')
    from jobs where kind = 'send_mail' and status in ('pending', 'running', 'dead') and ${IS_ENTRUSTED})`;

const givenUp = (kind: "route_message" | "send_mail", name: "message_id" | "outgoing_id") => sql<string>`(
    select coalesce(${jsonMember("payload", name)}, '') from jobs where kind = ${kind} and status = 'dead')`;

/** The ids of mails that were given up, and that the operator may have sent again. */
export const mailsGivenUp = () => givenUp("send_mail", "outgoing_id");

/** The ids of messages whose run was given up, and may be begun again. */
export const messagesGivenUp = () => givenUp("route_message", "message_id");

/** Mails of an account that are to be sent, and that no job is for. */
export async function orphanMails(tx: Db, user_id: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from outgoing_mails
    where user_id = ${user_id} and completed is null and id not in (${jobsFor("send_mail", "outgoing_id")})
    order by id limit ${limit}`.execute(tx);
  return rows.map(({ id }) => id);
}

/** What a job that was given up would be done again on: without it nobody can try it, and what it says of people is of no use. */
const LEFT_OF = [
  ["send_mail", "outgoing_id", "outgoing_mails where raw is not null and status <> 'sent' and"],
  ["route_message", "message_id", "messages where"],
  ["tell_failure", "message_id", "messages where"],
  ["fan_out_event", "event_id", "events where"],
] as const;

/** Jobs that were given up, and of which nothing is left. One that cannot be read is for the operator to drop. */
export async function deadOfNothing(tx: Db, limit: number): Promise<string[]> {
  const found = LEFT_OF.map(([kind, name, left]) => {
    const named = jsonMember("jobs.payload", name);
    return sql`select id from jobs where kind = ${kind} and status = 'dead' and ${named} is not null
      and not exists (select 1 from ${sql.raw(left)} id = ${named})`;
  });
  const { rows } = await sql<{ id: string }>`${sql.join(found, sql` union all `)} limit ${limit}`.execute(tx);
  return rows.map(({ id }) => id);
}
