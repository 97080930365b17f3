import { type Kysely, sql } from "kysely";

/**
 * Messages that wait until their words can be looked up: all of earlier versions do. The index itself is made at the start
 * (`src/db/text-index.ts`), because it is made anew where it is damaged.
 */
export const search = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create table unindexed_messages (
      user_id text not null references users (id) on delete cascade,
      message_id text not null,
      turn integer not null default 0,
      primary key (user_id, message_id)
    ) without rowid`.execute(db);
    await sql`insert into unindexed_messages (user_id, message_id)
      select user_id, id from messages where state <> 'received' order by user_id, id`.execute(db);
  },
};
