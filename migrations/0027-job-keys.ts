import { type Kysely, sql } from "kysely";

/**
 * Jobs of earlier versions get the key by which retention finds what they still need. Where two are for the same, one of
 * them has it: keys are unique.
 */
export const jobKeys = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const [kind, key] of [
      ["fan_out_event", "'event:' || (payload ->> 'event_id')"],
      ["tell_failure", "'message:' || (payload ->> 'message_id') || ' tell_failure'"],
      ["mail_notice", "'message:' || (payload ->> 'message_id') || ' ' || (payload ->> 'kind')"],
    ] as const)
      await sql`update or ignore jobs set dedupe_key = case when json_valid(payload) then ${sql.raw(key)} end
        where kind = ${kind} and status in ('pending', 'running') and dedupe_key is null`.execute(db);
  },
};
