import type { Kysely } from "kysely";

/** What happens to an account again and again takes the room of one event, and what is left out is counted. */
export const repeatedEvents = {
  async up(db: Kysely<unknown>): Promise<void> {
    const events = () => db.schema.alterTable("security_events");
    await events()
      .addColumn("times", "integer", (c) => c.notNull().defaultTo(1))
      .execute();
    await events()
      .addColumn("left_out", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
  },
};
