import { type Kysely, sql } from "kysely";

/** What contexts said before they were changed, and which version of each a message was worked on with. */
export const contextVersions = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("context_versions")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("context_id", "text", (column) =>
        column.notNull().references("contexts.id").onDelete("cascade"),
      )
      .addColumn("version", "integer", (column) => column.notNull())
      .addColumn("title", "text", (column) => column.notNull())
      .addColumn("body", "text", (column) => column.notNull())
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("created", "integer", (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex("context_versions_context")
      .on("context_versions")
      .columns(["context_id", "version"])
      .unique()
      .execute();
    await db.schema.createIndex("context_versions_user").on("context_versions").column("user_id").execute();
    await db.schema
      .alterTable("contexts")
      .addColumn("version", "integer", (column) => column.notNull().defaultTo(1))
      .execute();
    await db.schema
      .alterTable("contexts")
      .addColumn("version_created", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`update contexts set version_created = updated`.execute(db);
    await db.schema
      .alterTable("messages")
      .addColumn("contexts", "text", (column) => column.notNull().defaultTo(sql.lit("[]")))
      .execute();
  },
};
