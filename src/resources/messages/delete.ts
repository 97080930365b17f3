import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { enqueue } from "../../jobs/queue.ts";
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
    await refuseScheduled(tx, [id]);
    await tx.updateTable("messages").set({ deleted_at: app.now() }).where("id", "=", id).execute();
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

/** Deletes all messages of a conversation, or none while one of them is being worked on. */
export async function deleteConversation(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "messages_deleted");
    const { user } = caller;
    const shown = ownMessagesIn(app, tx, { user, id }).where("deleted_at", "is", null);
    if (!(await shown.limit(1).executeTakeFirst())) throw noConversation();
    if (await shown.where("state", "=", "received").limit(1).executeTakeFirst()) throw stillWorkedOn();
    await refuseScheduled(tx, shown);
    const { latest } = await ownMessagesIn(app, tx, { user, id })
      .clearSelect()
      .select((eb) => eb.fn.max("deleted_at").as("latest"))
      .executeTakeFirstOrThrow();
    // This moment is later than that of every earlier deletion in the conversation, also within a second: by it, only
    // messages that were deleted together come back together.
    const deleted_at = Math.max(app.now(), (latest ?? 0) + 1);
    await tx.updateTable("messages").set({ deleted_at }).where("id", "in", shown).execute();
    await eraseDeletedLater(app, tx, user);
  });
}

/** Undoes the deletion of a whole conversation; messages that were deleted before stay so. */
export async function restoreConversation(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    const all = ownMessagesIn(app, tx, { user, id });
    const last = await all
      .select("deleted_at")
      .where("deleted_at", "is not", null)
      .orderBy("deleted_at", "desc")
      .limit(1)
      .executeTakeFirst();
    if (!last) {
      if (await all.limit(1).executeTakeFirst()) return;
      throw noConversation();
    }
    await tx
      .updateTable("messages")
      .set({ deleted_at: null })
      .where("id", "in", all.where("deleted_at", "=", last.deleted_at))
      .execute();
    afterCommit(tx, () => app.changes.tell(user.id, last.id));
  });
}

/** Throws for a message that a schedule still has worked on: it would end with it, and nobody would be told. */
async function refuseScheduled(tx: Db, messages: string[] | ReturnType<typeof ownMessagesIn>): Promise<void> {
  const schedule = await tx
    .selectFrom("schedules")
    .select(["id", "title"])
    .where("message_id", "in", messages)
    .where("status", "!=", "ended")
    .limit(1)
    .executeTakeFirst();
  if (!schedule) return;
  throw new AppError(
    "conflict",
    `The schedule “${schedule.title}” has this message worked on again and again.`,
    {
      fix: `Delete the schedule first, on its page or with DELETE /v1/schedules/${schedule.id}.`,
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
    fix: "Wait for its end, or cancel it first with POST /messages/{message_id}/cancel.",
  });
}
