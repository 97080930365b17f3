import type { App } from "../app.ts";
import { closeCustomerLater } from "../billing/cancel.ts";
import type { Db } from "../db/database.ts";
import { jsonMember } from "../db/json-member.ts";
import { invalid } from "../errors.ts";
import { revokeTokens } from "../integrations/revoke.ts";
import { eraseLater } from "../jobs/erase.ts";
import { rangesOf } from "../lib/segments.ts";
import { normalizeEmail, type User } from "./accounts.ts";
import { refuseWithoutPassword } from "./passwords.ts";

/**
 * Deletes an account and all that is its own, in one transaction. What lies in segment files is overwritten right
 * after it; the addresses of its inboxes are never given out again. Tokens that came by OAuth are given back, if their
 * providers take them soon.
 */
export async function deleteAccount(
  app: App,
  user: User,
  input: { confirm: string; password?: string | undefined; client: string },
): Promise<void> {
  if (normalizeEmail(input.confirm, "body.confirm") !== user.email)
    throw invalid(
      "body.confirm",
      "mismatch",
      "To delete the account for good, confirm with its mail address.",
    );
  await refuseWithoutPassword(app, { user, client: input.client }, input.password);
  const gone = await app.write(async (tx) => {
    const inboxes = await retireAddresses(app, tx, user);
    await deleteJobs(tx, user);
    await closeCustomerLater(app, tx, user.id);
    const unfinished = await unfinishedMessages(tx, user);
    await deleteMessages(app, tx, user);
    const ids = [user.id, ...inboxes];
    for (const id of ids) await tx.deleteFrom("rate_limits").where("key", "like", `%${id}%`).execute();
    const connections = await tx
      .selectFrom("connections")
      .selectAll()
      .where("user_id", "=", user.id)
      .execute();
    // The rest goes with it: every other table that names a user does so by a foreign key that cascades.
    await tx.deleteFrom("users").where("id", "=", user.id).execute();
    return { unfinished, ids, connections };
  });
  for (const id of gone.ids) app.limiter.forgetNaming(id);
  // A call over HTTP that waits for its result waits no longer.
  for (const id of gone.unfinished) app.finished.notify(id);
  app.log.info({ user_id: user.id }, "account deleted");
  await Promise.all(gone.connections.map((connection) => revokeTokens(app, connection)));
}

/** Gives the ids of the inboxes whose addresses they were. */
async function retireAddresses(app: App, tx: Db, user: User): Promise<string[]> {
  const inboxes = await tx
    .selectFrom("inboxes")
    .select(["id", "local_part", "domain"])
    .where("user_id", "=", user.id)
    .execute();
  for (const { local_part, domain } of inboxes)
    await tx
      .insertInto("retired_addresses")
      .values({ address: `${local_part}@${domain}`, retired_at: app.now() })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  return inboxes.map(({ id }) => id);
}

/** One that is running loses its lease by it, and with it everything it would have written. */
async function deleteJobs(tx: Db, user: User): Promise<void> {
  for (const [member, table] of [
    ["message_id", "messages"],
    ["outgoing_id", "outgoing_mails"],
    ["domain_id", "custom_domains"],
  ] as const) {
    const own = tx.selectFrom(table).select("id").where("user_id", "=", user.id);
    await tx.deleteFrom("jobs").where(jsonMember("payload", member), "in", own).execute();
  }
  await tx.deleteFrom("jobs").where("account", "=", user.id).execute();
  await tx.deleteFrom("jobs").where(jsonMember("payload", "email"), "=", user.email).execute();
}

async function unfinishedMessages(tx: Db, user: User): Promise<string[]> {
  const rows = await tx
    .selectFrom("messages")
    .select("id")
    .where("user_id", "=", user.id)
    .where("state", "=", "received")
    .execute();
  return rows.map(({ id }) => id);
}

async function deleteMessages(app: App, tx: Db, user: User): Promise<void> {
  const own = tx.selectFrom("messages").where("user_id", "=", user.id);
  const files = await tx
    .selectFrom("attachments")
    .select(["segment", "segment_offset", "size"])
    .where("message_id", "in", own.select("id"))
    .where("segment", "is not", null)
    .execute();
  // A mail to inboxes of several accounts is stored once: it goes with the last of them.
  const mails = await tx
    .deleteFrom("raw_mails")
    .where("id", "in", own.select("raw_mail_id").where("raw_mail_id", "is not", null))
    .where((eb) => {
      const named = eb.selectFrom("messages").select("messages.id");
      const elsewhere = named.whereRef("messages.raw_mail_id", "=", "raw_mails.id");
      return eb.not(eb.exists(elsewhere.where("messages.user_id", "!=", user.id)));
    })
    .returning(["segment", "segment_offset", "size"])
    .execute();
  await tx.deleteFrom("messages").where("user_id", "=", user.id).execute();
  await eraseLater(app, tx, [...files, ...mails].flatMap(rangesOf));
}
