import type { App } from "../../app.ts";
import { closeCustomerLater } from "../billing/cancel.ts";
import type { Db } from "../../db/database.ts";
import { deleteRunningJobs, deleteSomeJobs } from "../../db/account-jobs.ts";
import { jsonMember, jsonTexts } from "../../db/json.ts";
import { allEntrustedMails } from "../../db/orphans.ts";
import { prepared } from "../../db/prepared.ts";
import { userById } from "../../db/users.ts";
import { invalid } from "../../errors.ts";
import { revokeTokens } from "../integrations/revoke.ts";
import { JOB_KINDS, JOB_RULES } from "../../jobs/kinds.ts";
import { deleteJobsFor } from "../../jobs/remove.ts";
import { enqueue, linesOf, strangersTo } from "../../jobs/queue.ts";
import type { Farewell } from "./account-mail.ts";
import { normalizeEmail, type User } from "./accounts.ts";
import { warnWithoutAdministrator } from "./administrator.ts";
import { keyMarksOf } from "./key-marks.ts";
import { forgetAskers } from "./code-askers.ts";
import { refuseWithoutPassword } from "./passwords.ts";

/** Tables of what could still act for the account, or be asked for by others, besides its own row. */
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

/** Deletes an account for its owner, who confirms with its address, and with its password if it has one. */
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
  await removeAccount(app, user, { key_id: input.key_id });
}

/**
 * Deletes an account: in one short transaction it is dead for everybody, and the job that this leaves behind ends what
 * waits for it and erases everything that was its own, some at a time. The addresses of its inboxes are never given out again. Tokens that came by OAuth are
 * given back, if their providers take them soon. The owner is told by mail.
 */
export async function removeAccount(
  app: App,
  user: User,
  by: { key_id: string | null } | "operator",
): Promise<void> {
  const gone = await app.write((tx) => endAccount(app, tx, user, by));
  if (!gone) return;
  for (const id of gone.ids) app.limiter.forgetNaming(id);
  // A call over HTTP that waits for its result waits no longer.
  for (const { id } of await messagesAmong(app, user, app.finished.names())) app.finished.notify(id);
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
  await enqueue(app, tx, { kind: "erase_account", payload, dedupe_key: eraseKey(user_id) });
}

/** Ends an account in its transaction; undefined if it is dead already. */
async function endAccount(app: App, tx: Db, user: User, who: Parameters<typeof removeAccount>[2]) {
  const by = who === "operator" ? who : await keyMarksOf(tx, who.key_id);
  const buried = await buryUser(app, tx, user);
  if (!buried) return undefined;
  const inboxes = await retireInboxes(app, tx, user);
  await deleteJobs(tx, user);
  await abandonWork(app, user.id)(tx);
  await closeCustomerLater(app, tx, user.id);
  const ids = [user.id, ...inboxes];
  for (const id of ids) await tx.deleteFrom("rate_limits").where("key", "like", `%${id}%`).execute();
  const connections = await tx.selectFrom("connections").selectAll().where("user_id", "=", user.id).execute();
  for (const table of LIVING_TABLES) await tx.deleteFrom(table).where("user_id", "=", user.id).execute();
  await forgetAskers(app, tx, user.email);
  await tx.updateTable("webhook_endpoints").set({ enabled: 0 }).where("user_id", "=", user.id).execute();
  await eraseAccountLater(app, tx, user.id, { email: user.email, by });
  return { ids, connections };
}

/**
 * Empties the row of an account: what stays for a while says nothing of anybody, and the address is free for a new
 * account.
 */
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

/**
 * Deletes the inboxes of an account and returns their ids. Nobody can write to what they are called from now on: it
 * is no address.
 */
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

/** Those of the ids that are messages of the account. */
async function messagesAmong(app: App, user: User, ids: string[]): Promise<{ id: string }[]> {
  return app.db
    .selectFrom("messages")
    .innerJoin(jsonTexts(JSON.stringify(ids)).as("listed"), "listed.value", "messages.id")
    .select("messages.id")
    .where("user_id", "=", user.id)
    .execute();
}

/** The most rows that one step changes. */
const ROWS = 200;

/**
 * Returns a step that ends some of what waits to be done for a dead account; the step returns true while there may be
 * more. What is begun meanwhile comes to nothing, which is seen to where it is begun. Two kinds of mail still go out:
 * the farewell, and what others had entrusted to the owner as the administrator. The account is erased once they have
 * been sent.
 */
export function abandonWork(app: App, user_id: string): (tx: Db) => Promise<boolean> {
  let last = "";
  return async (tx) => {
    const jobs = await deleteSomeJobs(tx, { kinds: JOB_KINDS, lines: allLinesOf(user_id) }, ROWS);
    if (jobs === ROWS) return true;
    const mails = await mailsAfter(tx, { user_id, last });
    const unsent = mails.filter(({ completed }) => completed === null);
    const letters = unsent.some(({ message_id }) => message_id === null);
    const kept = new Set(
      letters
        ? await entrustedOf(
            tx,
            unsent.map(({ id }) => id),
          )
        : [],
    );
    const waiting = unsent.map(({ id }) => id).filter((id) => !kept.has(id));
    if (waiting.length > 0)
      await tx
        .updateTable("outgoing_mails")
        .set({ status: "suppressed", completed: app.now() })
        .where("id", "in", waiting)
        .execute();
    last = mails.at(-1)?.id ?? last;
    return mails.length === ROWS;
  };
}

function allLinesOf(user_id: string): string[] {
  return [user_id, strangersTo(user_id)].flatMap(linesOf);
}

const mailsAfter = prepared((db, key: { user_id: string; last: string }) =>
  db
    .selectFrom("outgoing_mails")
    .select(["id", "completed", "message_id"])
    .where("user_id", "=", key.user_id)
    .where("id", ">", key.last)
    .orderBy("id")
    .limit(ROWS),
);

async function entrustedOf(tx: Db, ids: string[]): Promise<string[]> {
  const entrusted = tx.selectFrom("outgoing_mails").select("id").where("id", "in", allEntrustedMails());
  return (await entrusted.where("id", "in", ids).execute()).map(({ id }) => id);
}

/**
 * Deletes an account's jobs that are worked on, so that they lose their lease and can write nothing any more, and
 * jobs of no account that name this one. Few jobs of the kinds that are looked through here wait at any time.
 */
async function deleteJobs(tx: Db, user: User): Promise<void> {
  await deleteRunningJobs(tx, { kinds: JOB_KINDS, lines: allLinesOf(user.id) });
  const domains = await tx.selectFrom("custom_domains").select("id").where("user_id", "=", user.id).execute();
  const theirs: Record<string, string[]> = {
    domain_id: domains.map(({ id }) => id),
    user_id: [user.id],
    email: [user.email],
  };
  for (const kind of JOB_KINDS) await deleteJobsFor(tx, kind, theirs[JOB_RULES[kind].names ?? ""] ?? []);
}

/** Whether an account is dead and its owner is still to be told so: until then nothing goes out in its name. */
export async function isBeforeFarewell(db: Db, user_id: string): Promise<boolean> {
  const [user] = await userById(db, { id: user_id });
  if (user === undefined || user.deleted_at === null) return false;
  return (await farewells(db, { dedupe_key: eraseKey(user_id) })).some(({ farewell }) => farewell !== null);
}

const farewells = prepared((db, key: { dedupe_key: string }) =>
  db
    .selectFrom("jobs")
    .select(jsonMember("payload", "farewell").as("farewell"))
    .where("dedupe_key", "=", key.dedupe_key),
);

function eraseKey(user_id: string): string {
  return `erase ${user_id}`;
}
