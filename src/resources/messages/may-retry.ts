import type { Db } from "../../db/database.ts";
import type { MessageRow, MessageState } from "../../db/schema.ts";

/**
 * What trying a message again does: its work is done again (`run`), it is begun for the first time (`begin`), or its
 * answer, which never arrived, is mailed again (`send`).
 */
export type Retry = "run" | "begin" | "send";

type Tried = Pick<MessageRow, "state" | "source" | "reason" | "raw_mail_id" | "redone" | "reply_status">;

/** What trying a message again does, by the message alone; null if there is nothing to do. */
export function retryOf(message: Tried): Retry | null {
  if (message.source === "test") return null;
  if (message.state === "failed") return message.redone === 1 ? null : "run";
  if (isKept(message)) return "begin";
  return message.state === "done" && isUnanswered(message) ? "send" : null;
}

/**
 * Whether a message that was never begun is kept: a rule keeps it, it was over a limit, or it was left out by a cap against
 * loops. Its owner may want it done.
 */
function isKept({ state, reason, raw_mail_id }: Tried): boolean {
  if (reason === "kept_by_rule") return true;
  return raw_mail_id !== null && (state === "limited" || (state === "skipped" && reason === "loop_cap"));
}

function isUnanswered({ reply_status }: Pick<MessageRow, "reply_status">): boolean {
  return reply_status === "bounced" || reply_status === "suppressed";
}

/** What trying messages again does, by id, if what that takes is still there and no other try is under way or done. */
export async function mayRetry(db: Db, messages: MessageRow[]): Promise<Map<string, Retry>> {
  const tried = messages.flatMap((message) => {
    const retry = retryOf(message);
    return retry === null ? [] : [{ ...message, retry }];
  });
  const sent = tried.filter(({ retry }) => retry === "send").map(({ id }) => id);
  const worked = tried.filter(({ retry }) => retry !== "send");
  const inboxes = await inboxesLeft(db, idsIn(tried, "inbox_id"));
  const raws = await rawMailsLeft(db, idsIn(worked, "raw_mail_id"));
  const others = await otherTries(db, worked.map(firstTry));
  const answers = new Set((await answersKept(db, sent)).map(({ message_id }) => message_id));
  const isLeft = (message: (typeof tried)[number]): boolean =>
    inboxes.has(message.inbox_id) &&
    (message.retry === "send"
      ? answers.has(message.id)
      : raws.has(message.raw_mail_id) && !others.has(firstTry(message)));
  return new Map(tried.filter(isLeft).map(({ id, retry }) => [id, retry]));
}

/** The id of the first try, which all retries name, also a retry of a retry. */
export function firstTry(message: Pick<MessageRow, "id" | "retry_of">): string {
  return message.retry_of ?? message.id;
}

function idsIn<Name extends string>(rows: Record<Name, string | null>[], name: Name): string[] {
  return rows.flatMap((row) => row[name] ?? []);
}

async function inboxesLeft(db: Db, ids: string[]): Promise<Set<string | null>> {
  if (ids.length === 0) return new Set();
  const inboxes = db.selectFrom("inboxes").select("id").where("id", "in", ids);
  return new Set((await inboxes.where("deleted_at", "is", null).execute()).map(({ id }) => id));
}

/** A call has none, and needs none. */
async function rawMailsLeft(db: Db, ids: string[]): Promise<Set<string | null>> {
  if (ids.length === 0) return new Set([null]);
  const mails = db.selectFrom("raw_mails").select("id").where("id", "in", ids);
  const left = await mails.where("purged_at", "is", null).where("lost_at", "is", null).execute();
  return new Set([null, ...left.map(({ id }) => id)]);
}

async function otherTries(db: Db, firsts: string[]): Promise<Set<string | null>> {
  if (firsts.length === 0) return new Set();
  const tries = db.selectFrom("messages").select("retry_of").where("retry_of", "in", firsts);
  const others = await tries.where("state", "in", UNDER_WAY_OR_DONE).execute();
  return new Set(others.map(({ retry_of }) => retry_of));
}

/** One at most of all that try the same message again may be in one of these states. */
export const UNDER_WAY_OR_DONE: MessageState[] = ["received", "done"];

/** The answers to messages that did not arrive, and that can be mailed again. */
export async function answersKept(
  db: Db,
  message_ids: string[],
): Promise<{ id: string; message_id: string | null; envelope_to: string }[]> {
  if (message_ids.length === 0) return [];
  return db
    .selectFrom("outgoing_mails")
    .select(["id", "message_id", "envelope_to"])
    .where("message_id", "in", message_ids)
    .where("kind", "=", "reply")
    .where("status", "in", ["bounced", "suppressed"])
    .where("raw", "is not", null)
    .orderBy("id")
    .execute();
}
