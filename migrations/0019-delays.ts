import { type Kysely, sql } from "kysely";

/** Mails that a server has and goes on trying with: what waits here for its next attempt need not stand in this. */
export const delays = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex("outgoing_mails_delayed")
      .on("outgoing_mails")
      .column("completed")
      .where(sql<boolean>`status = 'deferred' and completed is not null`)
      .execute();
  },
};
