import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";

/** Said to the operator of a server on which no account is an administrator. */
export const NO_ADMINISTRATOR = "Nobody administers this server";
export const NAME_ADMINISTRATOR =
  "Set auth.admin_email to the address of an account, and restart the server: that account administers it from then on.";

/**
 * The account that gets the mail for the operator: that of `auth.admin_email`, else the first administrator, if there
 * is one.
 */
export async function findAdministrator(app: App): Promise<UserRow | undefined> {
  const named = app.config.auth.admin_email.toLowerCase();
  const admins = await app.db
    .selectFrom("users")
    .selectAll()
    // `auth.admin_email` may have been set after its account was made.
    .where((eb) => eb.or([eb("is_admin", "=", 1), eb("email", "=", named)]))
    .where("email_verified", "=", 1)
    .orderBy("id")
    .execute();
  return admins.find(({ email }) => email === named) ?? admins[0];
}

/** Whether there are accounts, and none of them is an administrator. */
export async function lacksAdministrator(db: Db): Promise<boolean> {
  const { accounts, admins } = await db
    .selectFrom("users")
    .select(({ fn }) => [
      fn.countAll<number>().as("accounts"),
      fn.sum<number | null>("is_admin").as("admins"),
    ])
    .where("email_verified", "=", 1)
    .executeTakeFirstOrThrow();
  return accounts > 0 && admins === 0;
}

/** Makes the account of `auth.admin_email`, which may be older than the setting, an administrator, and says so in the log. */
export async function appointAdministrator(app: App): Promise<void> {
  const named = app.config.auth.admin_email.toLowerCase();
  const appointed = await app.write((tx) =>
    tx
      .updateTable("users")
      .set({ is_admin: 1 })
      .where("email", "=", named)
      .where("email_verified", "=", 1)
      .where("is_admin", "=", 0)
      .returning("id")
      .executeTakeFirst(),
  );
  if (appointed)
    app.log.info(
      { user_id: appointed.id },
      "the account of auth.admin_email administers this server from now on",
    );
  await warnWithoutAdministrator(app);
}

export async function warnWithoutAdministrator(app: App): Promise<void> {
  if (await lacksAdministrator(app.db))
    app.log.warn(
      { mend: NAME_ADMINISTRATOR },
      "nobody administers this server: mail to postmaster@ is refused, and so is the contact form",
    );
}
