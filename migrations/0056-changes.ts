import { type Kysely, sql } from "kysely";

/** What a call that waits would change, beside what it would write. */
export const changes = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("approvals").addColumn("changes", "text").execute();
    // They are made anew at the start, and count what would change as well.
    for (const what of ["insert", "delete"])
      await sql.raw(`drop trigger if exists storage_approval_${what}`).execute(db);
  },
};
