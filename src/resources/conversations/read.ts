import type { ExpressionBuilder } from "kysely";
import { withoutQuote } from "../../ai/llm-faults.ts";
import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { MESSAGE_BYTES } from "../../db/row-bytes.ts";
import type { Authority, ConversationRow, MessageRow, Schema, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { decodeCursor, type Page, pageOf } from "../../lib/pagination.ts";
import { portionsOf } from "../../lib/portions.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { attachmentsOf } from "../messages/messages.ts";
import { factsOf } from "../messages/states.ts";
import { type AttachmentMeta, viewAttachment } from "../messages/view.ts";

/** The most turns that the detail of a conversation shows: the newest ones, and of those the first portion. */
const MAX_TURNS = 200;
/** Senders whose words are an instruction. All other words are content, which is not shown. */
const TRUSTED: ReadonlySet<Authority> = new Set(["owner", "listed"]);

type ConversationView = ReturnType<typeof viewListed>;

/** The user's conversations, the one with the latest reply first. */
export async function listConversations(
  app: App,
  user: UserRow,
  wanted: { limit: number; cursor?: string },
): Promise<Page<ConversationView>> {
  let query = app.db
    .selectFrom("conversations")
    .selectAll()
    .select((eb) => [
      newestOf(eb).select("state").as("latest_state"),
      newestOf(eb).select("reply_status").as("latest_reply_status"),
    ])
    .where("user_id", "=", user.id)
    .where("last_at", ">=", historySince(app, user))
    .where(isShown);
  if (wanted.cursor !== undefined) {
    const [last_at, id] = decodeCursor(wanted.cursor, ["time", "id"]);
    query = query.where((eb) => eb(eb.refTuple("last_at", "id"), "<", eb.tuple(last_at, id)));
  }
  const rows = await query
    .orderBy("last_at", "desc")
    .orderBy("id", "desc")
    .limit(wanted.limit + 1)
    .execute();
  return pageOf(rows, wanted.limit, { view: viewListed, key: ({ last_at, id }) => [last_at, id] });
}

/** A conversation of the user's own with its turns, oldest first. */
export async function readConversation(app: App, user: UserRow, id: string) {
  const since = historySince(app, user);
  const found = await app.db
    .selectFrom("conversations")
    .selectAll()
    .select(openedBy)
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .where("last_at", ">=", since)
    .where(isShown)
    .executeTakeFirst();
  if (!found) throw new AppError("not_found", "There is no such conversation.");
  const { opened_by, ...row } = found;
  const turns = await turnsOf(app.db, { id: row.id, since });
  const ids = turns.map((turn) => turn.id);
  const files = await attachmentsOf(app.db, ids);
  const { latest_sender: _sender, snippet: _snippet, ...head } = viewConversation(row);
  const subject = opened_by !== null && TRUSTED.has(opened_by) ? head.subject : "";
  return { ...head, subject, turns: turns.map((turn) => viewTurn(turn, files.get(turn.id) ?? [])) };
}

/** A conversation is shown unless all of its messages have been deleted. */
function isShown(eb: ExpressionBuilder<Schema, "conversations">) {
  const all = eb
    .selectFrom("messages")
    .select("messages.id")
    .whereRef("conversation_id", "=", "conversations.id");
  return eb.or([eb.exists(all.where("deleted_at", "is", null)), eb.not(eb.exists(all))]);
}

/** The newest message of a conversation that has not been deleted. */
function newestOf(eb: ExpressionBuilder<Schema, "conversations">) {
  return eb
    .selectFrom("messages")
    .whereRef("conversation_id", "=", "conversations.id")
    .where("deleted_at", "is", null)
    .orderBy("messages.id", "desc")
    .limit(1);
}

function viewListed({
  latest_state,
  latest_reply_status,
  ...row
}: ConversationRow &
  Record<"latest_state", MessageRow["state"] | null> &
  Record<"latest_reply_status", MessageRow["reply_status"] | null>) {
  const latest_status = latest_state === null ? null : factsOf(latest_state).activity;
  return { ...viewConversation(row), latest_status, latest_reply_status };
}

function viewConversation(row: ConversationRow) {
  const { user_id: _owner, ...view } = row;
  return view;
}

/** The authority of the sender who began a conversation, and so of its subject. */
function openedBy(eb: ExpressionBuilder<Schema, "conversations">) {
  return eb
    .selectFrom("messages")
    .select("authority")
    .whereRef("conversation_id", "=", "conversations.id")
    .orderBy("messages.id")
    .limit(1)
    .as("opened_by");
}

async function turnsOf(db: Db, conversation: { id: string; since: number }) {
  const newest = await db
    .selectFrom("messages")
    .select(["id", MESSAGE_BYTES.as("bytes")])
    .where("conversation_id", "=", conversation.id)
    .where("created", ">=", conversation.since)
    .where("deleted_at", "is", null)
    .orderBy("id", "desc")
    .limit(MAX_TURNS)
    .execute();
  const [shown = []] = portionsOf(newest);
  if (shown.length === 0) return [];
  return db
    .selectFrom("messages")
    .select([
      "id",
      "created",
      "source",
      "sender",
      "authority",
      "instruction",
      "command",
      "result",
      "state",
      "error",
    ])
    .where(
      "id",
      "in",
      shown.map(({ id }) => id),
    )
    .orderBy("id")
    .execute();
}

/** A turn: what the sender asked for and what was answered, never what a model was given to read. */
function viewTurn(row: Awaited<ReturnType<typeof turnsOf>>[number], files: AttachmentMeta[]) {
  const trusted = TRUSTED.has(row.authority);
  return {
    message_id: row.id,
    created: row.created,
    source: row.source,
    sender: row.sender,
    instruction: trusted ? (row.instruction ?? "") : "",
    command: trusted && row.command !== null ? storedJson<unknown>(row.command, null) : null,
    reply: row.result,
    status: factsOf(row.state).activity,
    error: row.error === null ? null : withoutQuote(row.error),
    attachments: files.filter((file) => file.direction === "out").map(viewAttachment),
  };
}
