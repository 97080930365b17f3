import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { AppError } from "../../errors.ts";
import { enqueue } from "../../jobs/queue.ts";
import { createTurns } from "../../lib/turns.ts";
import { ownMessage } from "./messages.ts";

/** How long a deletion can be undone at least; the page offers that for as long. */
export const UNDO_SECONDS = 30;
/**
 * How much longer a deleted message is kept than that, so that many that are deleted one after the other can all be
 * brought back together.
 */
const TOGETHER_SECONDS = 15;
/** How long a deleted message is kept before it is erased. */
export const ERASED_AFTER_SECONDS = UNDO_SECONDS + TOGETHER_SECONDS;

/**
 * Hides a message of the user's own, and has it erased once that can no longer be undone. Throws while it is being
 * worked on, as nobody would hear what came of that. What is still on its way to others gets there first.
 */
export async function deleteMessage(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "messages_deleted");
    const { user } = caller;
    const [message] = await ownMessage(tx, { user_id: user.id, id, since: historySince(app, user) });
    if (!message) throw noMessage();
    if (message.state === "received") throw stillWorkedOn();
    await refuseScheduled(tx, { user, message_id: id });
    await tx.updateTable("messages").set({ deleted_at: app.calmNow() }).where("id", "=", id).execute();
    await eraseDeletedLater(app, tx, user);
  });
}

/** Undoes a deletion; nothing changes for a message that was not deleted. */
export async function restoreMessage(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    const restored = await tx
      .updateTable("messages")
      .set({ deleted_at: null })
      .where("id", "=", id)
      .where("user_id", "=", user.id)
      .where("created", ">=", historySince(app, user))
      .returning("id")
      .executeTakeFirst();
    if (!restored) throw noMessage();
    afterCommit(tx, () => app.changes.tell(user.id, id));
  });
}

/**
 * Deletes all messages that a conversation has by now, or none while one of them is being worked on. A conversation may be
 * of any length, so that they are marked some at a time; a crash in between leaves the rest, and asking again deletes it.
 */
export async function deleteConversation(app: App, caller: Caller, id: string): Promise<void> {
  const { user } = caller;
  const { marking, marked } = await app.write(async (tx) => {
    await noteChange(app, tx, caller, "messages_deleted");
    const newest = await ownMessagesIn(app, tx, { user, id })
      .where("deleted_at", "is", null)
      .orderBy("messages.id", "desc")
      .limit(1)
      .executeTakeFirst();
    if (!newest) throw noConversation();
    await refuseWorkedOn(tx, user, id);
    await refuseScheduled(tx, { user, conversation_id: id });
    const last = await lastDeleted(app, tx, { user, id });
    await eraseDeletedLater(app, tx, user);
    // This moment is later than that of every earlier deletion in the conversation, also within a second: by it, only
    // messages that were deleted together come back together.
    const to = Math.max(app.calmNow(), (last?.deleted_at ?? 0) + 1);
    const first: Marking = { id, up_to: newest.id, from: null, to, after: "" };
    return { marking: first, marked: await markSome(app, tx, user, first) };
  });
  if (marked.length === ROWS) await markInSteps(app, user, { ...marking, after: marked.at(-1) ?? "" });
}

/** Undoes the deletion of a whole conversation; messages that were deleted before stay so. */
export async function restoreConversation(app: App, user: UserRow, id: string): Promise<void> {
  const last = await lastDeleted(app, app.db, { user, id });
  if (!last) {
    if (await ownMessagesIn(app, app.db, { user, id }).limit(1).executeTakeFirst()) return;
    throw noConversation();
  }
  await markInSteps(app, user, { id, up_to: last.id, from: last.deleted_at, to: null, after: "" });
  app.changes.tell(user.id, last.id);
}

interface Marking {
  /** The conversation. */
  id: string;
  /** Its last message that is marked. */
  up_to: string;
  /** The moment of deletion of those that are marked, and the one that they get; null: not deleted. */
  from: number | null;
  to: number | null;
  /** Its last message that was looked at; empty at the beginning. */
  after: string;
}

/** Messages that one transaction marks. */
const ROWS = 100;

/** An account marks one conversation at a time: many at once would hold up everybody else. */
const turns = createTurns();

async function markInSteps(app: App, user: UserRow, marking: Marking): Promise<void> {
  await turns(user.id, async () => {
    let { after } = marking;
    for (;;) {
      const marked = await app.write((tx) => markSome(app, tx, user, { ...marking, after }));
      after = marked.at(-1) ?? "";
      if (marked.length < ROWS) return;
      // Others have their turn before the next step.
      await Bun.sleep(0);
    }
  });
}

/** Marks the next messages of a conversation. Returns their ids. */
async function markSome(
  app: App,
  tx: Db,
  user: UserRow,
  { id, up_to, from, to, after }: Marking,
): Promise<string[]> {
  const rows = await ownMessagesIn(app, tx, { user, id })
    .where("messages.id", ">", after)
    .where("messages.id", "<=", up_to)
    .where("deleted_at", from === null ? "is" : "=", from)
    .orderBy("messages.id")
    .limit(ROWS)
    .execute();
  const ids = rows.map((row) => row.id);
  if (ids.length > 0)
    await tx.updateTable("messages").set({ deleted_at: to }).where("id", "in", ids).execute();
  return ids;
}

/** The message of a conversation that was deleted last, and of those of one moment the newest. */
function lastDeleted(app: App, db: Db, conversation: { user: UserRow; id: string }) {
  return ownMessagesIn(app, db, conversation)
    .select("deleted_at")
    .where("deleted_at", "is not", null)
    .orderBy("deleted_at", "desc")
    .orderBy("messages.id", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Throws while a message of a conversation is being worked on. Few messages of an account are, and their index is short. */
async function refuseWorkedOn(tx: Db, { id: user_id }: UserRow, conversation_id: string): Promise<void> {
  const worked_on = await tx
    .selectFrom("messages")
    .select("id")
    .where("user_id", "=", user_id)
    .where("state", "=", "received")
    .where(NOT_DONE)
    .where("conversation_id", "=", conversation_id)
    .where("deleted_at", "is", null)
    .limit(1)
    .executeTakeFirst();
  if (worked_on) throw stillWorkedOn();
}

/** Throws for a message that a schedule still has worked on: it would end with it, and nobody would be told. */
async function refuseScheduled(
  tx: Db,
  { user, ...of }: { user: UserRow } & ({ message_id: string } | { conversation_id: string }),
): Promise<void> {
  const own = tx
    .selectFrom("schedules")
    .innerJoin("messages", "messages.id", "schedules.message_id")
    .select(["schedules.id", "schedules.title"])
    .where("schedules.user_id", "=", user.id)
    .where("schedules.status", "!=", "ended");
  const schedule = await (
    "message_id" in of
      ? own.where("messages.id", "=", of.message_id)
      : own.where("messages.conversation_id", "=", of.conversation_id)
  )
    .limit(1)
    .executeTakeFirst();
  if (!schedule) return;
  throw new AppError(
    "conflict",
    `The schedule “${schedule.title}” has this message worked on again and again.`,
    {
      fix: `Delete the schedule first, on its page (\`DELETE /v1/schedules/${schedule.id}\`).`,
    },
  );
}

function ownMessagesIn(app: App, tx: Db, { user, id }: { user: UserRow; id: string }) {
  return tx
    .selectFrom("messages")
    .select("messages.id")
    .where("conversation_id", "=", id)
    .where("user_id", "=", user.id)
    .where("created", ">=", historySince(app, user));
}

async function eraseDeletedLater(app: App, tx: Db, { id: user_id }: Pick<UserRow, "id">): Promise<void> {
  await enqueue(app, tx, {
    kind: "erase_messages",
    payload: { user_id },
    dedupe_key: `deleted ${user_id}`,
    run_at: app.after(ERASED_AFTER_SECONDS),
  });
}

function noMessage(): AppError {
  return new AppError("not_found", "There is no such message.");
}

function noConversation(): AppError {
  return new AppError("not_found", "There is no such conversation.");
}

function stillWorkedOn(): AppError {
  return new AppError("conflict", "This is still being worked on, so it cannot be deleted yet.", {
    fix: "Wait for its end, or cancel it first (`POST /messages/{message_id}/cancel`).",
  });
}
