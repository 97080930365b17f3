import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { OutgoingMailRow, UserRow } from "../../db/schema.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { prepareLetter, type QueueLetter } from "../writing/letters.ts";
import { mayTellFrom, noteTold } from "../../jobs/tell-later.ts";
import { listed, MOST_LISTED } from "../writing/lists.ts";
import { ownerRestsUntil } from "./suppressions.ts";

/** How many bounces one letter reports; the rest follows the next day. */
const MAX_AT_ONCE = 1_000;

/**
 * Mails an owner which answers bounced, unless that was done today: then tomorrow. While mail to the owner comes back, the
 * letter waits, as nothing else would tell of its own return.
 */
export async function mailReturnsNow(app: App, job: Job<"mail_returns">, signal: AbortSignal): Promise<void> {
  const { user_id } = job.payload;
  const user = await app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", user_id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  const letter = { user_id, kind: "answers_returned" } as const;
  const later = user ? ((await mayTellFrom(app, app.db, letter)) ?? (await restOf(app, user))) : null;
  if (later !== null) {
    await app.write((tx) => deferJob(tx, job, later));
    return;
  }
  const returned = await returnedTo(app.db, user_id);
  const queue = user && (await letterOf(app, user, returned));
  await writeOutcome(app, signal, async (tx) => {
    const ids = returned.map(({ id }) => id);
    if (ids.length > 0) await tx.deleteFrom("undelivered_answers").where("outgoing_id", "in", ids).execute();
    const is_more = (await returnedTo(tx, user_id)).length > 0;
    await (is_more ? deferJob(tx, job, app.now()) : finishJob(tx, job));
    if (!queue) return;
    await noteTold(app, tx, letter);
    await queue(tx);
  });
}

/** Until when a letter to the owner would hardly arrive; null where it would. */
async function restOf(app: App, user: UserRow): Promise<number | null> {
  const until = await ownerRestsUntil(app.db, user);
  return until !== null && until > app.calmNow() ? until : null;
}

type Returned = Pick<OutgoingMailRow, "id" | "envelope_to" | "response"> & { subject: string | null };

function returnedTo(db: Db, user_id: string): Promise<Returned[]> {
  return db
    .selectFrom("undelivered_answers")
    .innerJoin("outgoing_mails", "outgoing_mails.id", "outgoing_id")
    .innerJoin("messages", "messages.id", "outgoing_mails.message_id")
    .select(["outgoing_mails.id", "envelope_to", "response", "subject"])
    .where("undelivered_answers.user_id", "=", user_id)
    .orderBy("outgoing_mails.id")
    .limit(MAX_AT_ONCE)
    .execute();
}

/** Returns the letter; undefined when nothing is left to be told. */
async function letterOf(app: App, user: UserRow, returned: Returned[]): Promise<QueueLetter | undefined> {
  if (returned.length === 0) return undefined;
  const lines = returned
    .slice(0, MOST_LISTED)
    .map(({ envelope_to, subject, response }) =>
      [`To ${asCode(envelope_to)}, about ${asCode(subject || "(no subject)")}:`, asCode(response ?? "")].join(
        " ",
      ),
    );
  const count = returned.length === 1 ? "An answer" : `${returned.length} answers`;
  const markdown = [
    `${count} that Mailwright wrote for you could not be delivered:`,
    listed(lines, returned.length),
    "The answers themselves are in your activity, so nothing is lost: once the cause is mended, “Send the answer again” there mails one again, for as long as its mail is kept. An address that turned out to be dead gets no more answers until somebody writes from it again; your own is tried again once a day.",
    "You get this mail once a day at most.",
  ].join("\n\n");
  const subject =
    returned.length === 1 ? "An answer could not be delivered" : "Answers could not be delivered";
  return prepareLetter(app, { user_id: user.id, to: user.email, subject, markdown });
}
