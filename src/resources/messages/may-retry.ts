import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { MessageRow } from "../../db/schema.ts";
import { UNDER_WAY_OR_DONE } from "../../db/tries.ts";
import { waitsForTry } from "../../jobs/tries.ts";
import { waitsUntil } from "./rules-found.ts";

/**
 * What trying a message again does: its work is done again (`run`), it is begun for the first time (`begin`), its
 * answer, which never arrived, is mailed again (`send`), or it waits no longer for a time (`now`): that of a rule, or of its
 * next try.
 */
export type Retry = "run" | "begin" | "send" | "now";

/** What can be tried again of a message, and whether another try is under way or done. */
export interface Tries {
  may_retry: Retry | null;
  tried_again: "received" | "done" | null;
}

type Tried = Pick<MessageRow, "state" | "source" | "reason" | "raw_mail_id" | "redone" | "reply_status">;

/** What trying a message again does that has ended, by the message alone; null if there is nothing to do. */
export function retryOf(message: Tried): Exclude<Retry, "now"> | null {
  if (message.source === "test") return null;
  if (message.state === "failed" || message.reason === "budget_used_up")
    return message.redone === 1 ? null : "run";
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

/**
 * Looks what trying these messages again does, which takes that what it needs is still there and that no other try is under
 * way or done. Returns what there is to say of each.
 */
export async function lookAtTries(
  app: Pick<App, "db" | "now">,
  messages: MessageRow[],
): Promise<(message: MessageRow) => Tries> {
  const { db } = app;
  const waiting = await waitingAmong(app, messages);
  const tried = messages.flatMap((message) => {
    const retry: Retry | null = waiting.has(message.id) ? "now" : retryOf(message);
    return retry === null ? [] : [{ ...message, retry }];
  });
  const sent = tried.filter(({ retry }) => retry === "send").map(({ id }) => id);
  const worked = tried.filter(({ retry }) => retry === "run" || retry === "begin");
  const inboxes = await inboxesLeft(db, idsIn(tried, "inbox_id"));
  const gone = await materialGone(db, worked);
  const others = await otherTries(db, worked.map(firstTry));
  const answers = new Set((await answersKept(db, sent)).map(({ message_id }) => message_id));
  const isLeft = (message: (typeof tried)[number]): boolean => {
    if (!inboxes.has(message.inbox_id)) return false;
    if (message.retry === "now") return true;
    if (message.retry === "send") return answers.has(message.id);
    return !gone.has(message.id) && !others.has(firstTry(message));
  };
  const left = new Map(tried.filter(isLeft).map(({ id, retry }) => [id, retry]));
  const again = new Map(worked.map((message) => [message.id, others.get(firstTry(message))]));
  return ({ id, redone }) => ({
    may_retry: left.get(id) ?? null,
    tried_again: redone === 1 ? "done" : (again.get(id) ?? null),
  });
}

/** The ids of those that wait for a time. A message that was tried, and waits for its next try, has a step that says so. */
async function waitingAmong(app: Pick<App, "db" | "now">, messages: MessageRow[]): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const message of messages) {
    const is_tried = message.state === "received" && message.steps !== "[]";
    const waits = waitsUntil(message) !== null || (is_tried && (await waitsForTry(app, app.db, message)));
    if (waits) ids.add(message.id);
  }
  return ids;
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

/** The ids of those messages of which something is not kept any more that another run needs (see `materialToRepeat`). */
async function materialGone(db: Db, messages: MessageRow[]): Promise<Set<string>> {
  const mails = idsIn(messages, "raw_mail_id");
  const calls = messages.filter(({ raw_mail_id }) => raw_mail_id === null).map(({ id }) => id);
  const left = new Set(mails.length === 0 ? [] : (await rawMailsLeft(db, mails)).map(({ id }) => id));
  const without = messages.filter(({ raw_mail_id }) => raw_mail_id !== null && !left.has(raw_mail_id));
  const purged = calls.length === 0 ? [] : await callsPurged(db, calls);
  return new Set([...without, ...purged].map(({ id }) => id));
}

function rawMailsLeft(db: Db, ids: string[]): Promise<{ id: string }[]> {
  const mails = db.selectFrom("raw_mails").select("id").where("id", "in", ids);
  return mails.where("purged_at", "is", null).where("lost_at", "is", null).execute();
}

/** The calls whose content or a file of which has been deleted, or is lost. */
function callsPurged(db: Db, ids: string[]): Promise<{ id: string }[]> {
  return db
    .selectFrom("message_contents")
    .select("message_id as id")
    .where("message_id", "in", ids)
    .where("purged_at", "is not", null)
    .union(
      db
        .selectFrom("attachments")
        .select("message_id as id")
        .where("message_id", "in", ids)
        .where("direction", "=", "in")
        .where((eb) => eb.or([eb("purged_at", "is not", null), eb("lost_at", "is not", null)])),
    )
    .execute();
}

/** By their first try, the other tries that are under way or done. */
async function otherTries(db: Db, firsts: string[]): Promise<Map<string | null, "received" | "done">> {
  if (firsts.length === 0) return new Map();
  const tries = db.selectFrom("messages").select(["retry_of", "state"]).where("retry_of", "in", firsts);
  const others = await tries.where("state", "in", UNDER_WAY_OR_DONE).execute();
  return new Map(others.map(({ retry_of, state }) => [retry_of, state === "done" ? state : "received"]));
}

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
