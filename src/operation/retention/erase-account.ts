import { type Farewell, prepareFarewell } from "../../resources/accounts/account-mail.ts";
import { abandonWork, eraseAccountLater } from "../../resources/accounts/deletion.ts";
import type { App } from "../../app.ts";
import { closeCustomerLater } from "../../resources/billing/cancel.ts";
import { removeProgramFolders } from "../../resources/connections/program-folders.ts";
import type { Db } from "../../db/database.ts";
import { allEntrustedMails } from "../../db/orphans.ts";
import { prepared } from "../../db/prepared.ts";
import { eraseLater, sweepLater } from "../../jobs/erase.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { deleteJobsOfNothing } from "../../jobs/remove.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { deleteMessages, MESSAGES_AT_ONCE } from "./messages.ts";
import { beginShift, isOver, type Step, takeTurns } from "../../jobs/shift.ts";

/** Rows in one step. */
const ROWS = 10;

/** How long to wait before checking again whether the mail about the account's end was sent. */
const FAREWELL_SECONDS = 600;

/** Tables of which an account may have more rows than can be deleted at once. */
const LONG_TABLES = [
  "conversations",
  "outgoing_mails",
  "events",
  "ledger",
  "replays",
  "context_versions",
  "contexts",
  "written_texts",
] as const;

/** Erases the data of a deleted account in small steps, and finally the account itself. */
export async function eraseAccountNow(
  app: App,
  job: Job<"erase_account">,
  signal: AbortSignal,
): Promise<void> {
  const { user_id, farewell } = job.payload;
  const shift = beginShift(app, signal);
  if (farewell) {
    await takeTurns(shift, abandonWork(app, user_id));
    if (isOver(shift)) return writeOutcome(app, signal, (tx) => deferJob(tx, job, app.now()));
    return sayFarewell(app, { job, farewell }, signal);
  }
  await takeTurns(shift, messagesOf(user_id));
  for (const table of LONG_TABLES) await takeTurns(shift, rowsOf(table, user_id));
  await takeTurns(shift, keysOf(user_id));
  await takeTurns(shift, mailKeysOf(user_id));
  await takeTurns(shift, deleteJobsOfNothing);
  await removeProgramFolders(app, user_id);
  const done = await writeOutcome(app, signal, (tx) => finish(app, tx, job, isOver(shift)));
  if (!done) return;
  await takeTurns(shift, async () => app.upkeep.giveBackSpace());
  app.log.info({ user_id }, "deleted account erased");
}

/** Sends the mail about the account's end, once: the job continues as another one without it. */
async function sayFarewell(
  app: App,
  { job, farewell }: { job: Job<"erase_account">; farewell: Farewell },
  signal: AbortSignal,
): Promise<void> {
  const { user_id } = job.payload;
  const queue = await prepareFarewell(app, user_id, farewell);
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    await queue(tx);
    await eraseAccountLater(app, tx, user_id);
  });
}

function messagesOf(user_id: string): Step {
  return async (tx, ranges) => {
    const found = await someMessages(tx, { user_id });
    ranges.push(...(await deleteMessages(tx, found)));
    return found.length === MESSAGES_AT_ONCE;
  };
}

const someMessages = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("messages")
    .select(["id", "raw_mail_id", "conversation_id"])
    .where("user_id", "=", key.user_id)
    .orderBy("id")
    .limit(MESSAGES_AT_ONCE),
);

function rowsOf(table: (typeof LONG_TABLES)[number], user_id: string): Step {
  return async (tx) => {
    const some = tx
      .selectFrom(table)
      .select("id")
      .where("user_id", "=", user_id)
      .$if(table === "outgoing_mails", (mails) =>
        mails.where("completed", "is not", null).where("id", "not in", allEntrustedMails()),
      )
      .limit(ROWS);
    const { numDeletedRows } = await tx.deleteFrom(table).where("id", "in", some).executeTakeFirst();
    return numDeletedRows === BigInt(ROWS);
  };
}

function keysOf(user_id: string): Step {
  return async (tx) => {
    const some = tx.selectFrom("idempotency_keys").select("key").where("user_id", "=", user_id).limit(ROWS);
    const { numDeletedRows } = await tx
      .deleteFrom("idempotency_keys")
      .where("user_id", "=", user_id)
      .where("key", "in", some)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  };
}

function mailKeysOf(user_id: string): Step {
  return async (tx) => {
    const found = await someMailKeys(tx, { user_id });
    for (const { inbox_id, key_hash } of found)
      await tx
        .deleteFrom("mail_keys")
        .where("inbox_id", "=", inbox_id)
        .where("key_hash", "=", key_hash)
        .execute();
    return found.length === ROWS;
  };
}

const someMailKeys = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("inboxes")
    .innerJoin("mail_keys", "mail_keys.inbox_id", "inboxes.id")
    .select(["mail_keys.inbox_id", "mail_keys.key_hash"])
    .where("inboxes.user_id", "=", key.user_id)
    .limit(ROWS),
);

/**
 * Returns whether a mail of a deleted account is still to be sent: the one about its end, or mail entrusted to its
 * owner as the administrator. The latter counts even when given up, while the operator may send it again.
 */
async function isMailUnderWay(tx: Db, user_id: string): Promise<boolean> {
  const mails = tx.selectFrom("outgoing_mails").select("id").where("user_id", "=", user_id);
  const waiting = mails.where((eb) =>
    eb.or([eb("completed", "is", null), eb("id", "in", allEntrustedMails())]),
  );
  return (await waiting.executeTakeFirst()) !== undefined;
}

/**
 * Deletes the account's row. Returns false when more is left to erase, because something arrived during the deletion.
 */
async function finish(app: App, tx: Db, job: Job<"erase_account">, again: boolean): Promise<boolean> {
  const { user_id } = job.payload;
  if (await isMailUnderWay(tx, user_id)) {
    await deferJob(tx, job, app.now() + FAREWELL_SECONDS);
    return false;
  }
  if (again || (await someMessages(tx, { user_id })).length > 0) {
    await deferJob(tx, job, app.now());
    return false;
  }
  // Cancels a subscription begun during the deletion; usually there is none.
  await closeCustomerLater(app, tx, user_id);
  // Other tables with a user's rows follow by cascading foreign keys.
  await tx.deleteFrom("users").where("id", "=", user_id).execute();
  await eraseLater(app, tx, []);
  await sweepLater(app, tx);
  await finishJob(tx, job);
  return true;
}
