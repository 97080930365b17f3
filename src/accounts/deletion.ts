import type { App } from "../app.ts";
import { closeCustomerLater } from "../billing/cancel.ts";
import type { Db } from "../db/database.ts";
import { jsonMember } from "../db/json.ts";
import { NOT_DONE } from "../db/unfinished.ts";
import { invalid } from "../errors.ts";
import { revokeTokens } from "../integrations/revoke.ts";
import { enqueue, linesOf } from "../jobs/queue.ts";
import type { Farewell } from "./account-mail.ts";
import { normalizeEmail, type User } from "./accounts.ts";
import { warnWithoutAdministrator } from "./administrator.ts";
import { keyNamed } from "./key-marks.ts";
import { forgetAskers } from "./code-askers.ts";
import { refuseWithoutPassword } from "./passwords.ts";

/** What could still act for the account, or be asked for by others, besides what a user's row says. */
const LIVING_TABLES = [
  "api_keys",
  "sessions",
  "login_codes",
  "pending_passwords",
  "security_events",
  "oauth_states",
  "connections",
  "custom_domains",
  "billing_accounts",
] as const;

/**
 * Deletes an account: in one short transaction it is dead, and the job that this leaves behind erases everything that
 * was its own, some at a time. The addresses of its inboxes are never given out again. Tokens that came by OAuth are
 * given back, if their providers take them soon. The owner is told by mail.
 */
export async function deleteAccount(
  app: App,
  user: User,
  input: { confirm: string; password?: string | undefined; client: string; key_id: string | null },
): Promise<void> {
  if (normalizeEmail(input.confirm, "body.confirm") !== user.email)
    throw invalid(
      "body.confirm",
      "mismatch",
      "To delete the account for good, confirm with its mail address.",
    );
  const { client, password: given } = input;
  await refuseWithoutPassword(app, { user, client }, { member: "password", given });
  const gone = await app.write((tx) => endAccount(app, tx, user, input.key_id));
  if (!gone) return;
  for (const id of gone.ids) app.limiter.forgetNaming(id);
  // A call over HTTP that waits for its result waits no longer.
  for (const id of gone.unfinished) app.finished.notify(id);
  app.log.info({ user_id: user.id }, "account deleted");
  if (user.is_admin === 1) await warnWithoutAdministrator(app);
  await Promise.all(gone.connections.map((connection) => revokeTokens(app, connection)));
}

/** Has what is left of a dead account erased, unless that is under way. `farewell` is mailed before. */
export async function eraseAccountLater(
  app: App,
  tx: Db,
  user_id: string,
  farewell?: Farewell,
): Promise<void> {
  const payload = { user_id, ...(farewell ? { farewell } : {}) };
  await enqueue(app, tx, { kind: "erase_account", payload, dedupe_key: `erase ${user_id}` });
}

/** Undefined for one that is dead already. */
async function endAccount(app: App, tx: Db, user: User, key_id: string | null) {
  const by = await keyNamed(tx, key_id);
  const buried = await buryUser(app, tx, user);
  if (!buried) return undefined;
  const inboxes = await retireInboxes(app, tx, user);
  const unfinished = await abandonMessages(tx, user);
  await deleteJobs(tx, user);
  await abandonMails(app, tx, user);
  await closeCustomerLater(app, tx, user.id);
  const ids = [user.id, ...inboxes];
  for (const id of ids) await tx.deleteFrom("rate_limits").where("key", "like", `%${id}%`).execute();
  const connections = await tx.selectFrom("connections").selectAll().where("user_id", "=", user.id).execute();
  for (const table of LIVING_TABLES) await tx.deleteFrom(table).where("user_id", "=", user.id).execute();
  await forgetAskers(app, tx, user.email);
  await tx.updateTable("webhook_endpoints").set({ enabled: 0 }).where("user_id", "=", user.id).execute();
  await eraseAccountLater(app, tx, user.id, { email: user.email, by });
  return { unfinished, ids, connections };
}

/** What stays for a while is a row that says nothing of anybody; the address is free for a new account. */
async function buryUser(app: App, tx: Db, { id }: User): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("users")
    .set({
      email: id,
      email_verified: 0,
      name: null,
      is_admin: 0,
      password_hash: null,
      deleted_at: app.now(),
    })
    .where("id", "=", id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Gives their ids. Nobody can write to what they are called now: it is no address. */
async function retireInboxes(app: App, tx: Db, user: User): Promise<string[]> {
  const inboxes = await tx
    .selectFrom("inboxes")
    .select(["id", "local_part", "domain"])
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .execute();
  for (const { id, local_part, domain } of inboxes) {
    await tx
      .insertInto("retired_addresses")
      .values({ address: `${local_part}@${domain}`, retired_at: app.now() })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const nameless = { label: "", prefix: null, local_part: id, domain: "" };
    await tx.updateTable("inboxes").set(nameless).where("id", "=", id).execute();
  }
  return inboxes.map(({ id }) => id);
}

/** Gives the ids of those that wait or are worked on: without an inbox no tool is called for them any more. */
async function abandonMessages(tx: Db, user: User): Promise<string[]> {
  const rows = await tx
    .updateTable("messages")
    .set({ inbox_id: null })
    .where("user_id", "=", user.id)
    .where(NOT_DONE)
    .where("state", "=", "received")
    .returning("id")
    .execute();
  return rows.map(({ id }) => id);
}

/** What is told later is the farewell alone: the account is erased once it has been sent. */
async function abandonMails(app: App, tx: Db, user: User): Promise<void> {
  await tx
    .updateTable("outgoing_mails")
    .set({ status: "suppressed", completed: app.now() })
    .where("user_id", "=", user.id)
    .where("completed", "is", null)
    .execute();
}

/** One that is running loses its lease by it, and with it everything it would have written. */
async function deleteJobs(tx: Db, user: User): Promise<void> {
  const waiting = tx
    .selectFrom("messages")
    .select("id")
    .where("user_id", "=", user.id)
    .where(NOT_DONE)
    .where("state", "=", "received");
  const named = [
    ["route_message", "message_id", waiting],
    [
      "check_domain",
      "domain_id",
      tx.selectFrom("custom_domains").select("id").where("user_id", "=", user.id),
    ],
  ] as const;
  for (const [kind, member, own] of named)
    await tx
      .deleteFrom("jobs")
      .where("kind", "=", kind)
      .where(jsonMember("payload", member), "in", own)
      .execute();
  await tx
    .deleteFrom("jobs")
    .where("kind", "=", "send_mail")
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom("outgoing_mails")
          .select("outgoing_mails.id")
          .where("outgoing_mails.id", "=", jsonMember("jobs.payload", "outgoing_id"))
          .where("user_id", "=", user.id),
      ),
    )
    .execute();
  await tx.deleteFrom("jobs").where("account", "in", linesOf(user.id)).execute();
  await tx.deleteFrom("jobs").where(jsonMember("payload", "user_id"), "=", user.id).execute();
  await tx.deleteFrom("jobs").where(jsonMember("payload", "email"), "=", user.email).execute();
}
