import { type Kysely, sql } from "kysely";

export const operation = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("billing_accounts").addColumn("plan", "text").execute();
    await db.schema.alterTable("billing_accounts").addColumn("price_id", "text").execute();
    // Nobody wrote down so far what a subscription gave: most likely it is the plan that its account has.
    await sql`
      update billing_accounts
      set plan = (select nullif(users.plan, 'free') from users where users.id = billing_accounts.user_id)
      where subscription_id is not null
    `.execute(db);
  },
};
