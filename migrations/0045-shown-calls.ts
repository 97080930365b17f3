import { type Kysely, sql } from "kysely";

/** What its owner was shown of a call that waits: to work it out at each reading would hold up everybody. */
export const shownCalls = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("approvals").addColumn("shown", "text").execute();
    // They are made anew at the start, and count what is shown as well.
    for (const what of ["insert", "update", "delete"])
      await sql.raw(`drop trigger if exists storage_approval_${what}`).execute(db);
  },
};
