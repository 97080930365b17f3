import { type Kysely, sql } from "kysely";

export const dkimKeys = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("dkim_keys")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("domain_id", "text", (c) => c.references("custom_domains.id").onDelete("cascade"))
      .addColumn("selector", "text", (c) => c.notNull())
      .addColumn("algorithm", "text", (c) => c.notNull())
      .addColumn("public_part", "text", (c) => c.notNull())
      .addColumn("sealed", "blob")
      .addColumn("state", "text", (c) => c.notNull())
      .addColumn("record", "text", (c) => c.notNull())
      .addColumn("seen_at", "bigint")
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("retired_at", "bigint")
      .execute();
    const unique = db.schema.createIndex("dkim_keys_domain").on("dkim_keys").unique();
    await unique.columns(["domain_id", "selector"]).execute();
    const service = db.schema.createIndex("dkim_keys_service").on("dkim_keys").column("selector").unique();
    await service.where(sql.ref("domain_id"), "is", null).execute();
    // A key that is sealed for the id of its domain opens under that id alone, so it keeps it.
    await sql`
      insert into dkim_keys
        (id, domain_id, selector, algorithm, public_part, sealed, state, record, created)
      select id, id, dkim_selector, 'rsa', dkim_public, dkim_sealed, 'signing', 'unknown', created
      from custom_domains`.execute(db);
    for (const column of ["dkim_selector", "dkim_public", "dkim_sealed"])
      await db.schema.alterTable("custom_domains").dropColumn(column).execute();
  },
};
