import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";

/** Who gets the mail that is meant for the operator: `auth.admin_email`, else the first administrator, if there is one. */
export async function findAdministrator(app: App): Promise<UserRow | undefined> {
  const named = app.config.auth.admin_email.toLowerCase();
  const admins = await app.db
    .selectFrom("users")
    .selectAll()
    // The setting may be younger than the account.
    .where((eb) => eb.or([eb("is_admin", "=", 1), eb("email", "=", named)]))
    .where("email_verified", "=", 1)
    .orderBy("id")
    .execute();
  return admins.find(({ email }) => email === named) ?? admins[0];
}
