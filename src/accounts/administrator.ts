import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";

/** Who gets the mail that is meant for the operator: `auth.admin_email`, else the first administrator, if there is one. */
export async function findAdministrator(app: App): Promise<UserRow | undefined> {
  const admins = await app.db
    .selectFrom("users")
    .selectAll()
    .where("is_admin", "=", 1)
    .where("email_verified", "=", 1)
    .orderBy("id")
    .execute();
  const named = app.config.auth.admin_email.toLowerCase();
  return admins.find(({ email }) => email === named) ?? admins[0];
}
