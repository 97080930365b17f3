import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { insertRow, prepared } from "../../db/prepared.ts";
import type { ConversationRow, InboxRow, MessageRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { splitAddress } from "../../lib/mail-address.ts";
import { base32Token, equalBytes } from "../../lib/secrets.ts";
import { isAnswered } from "../messages/answered.ts";
import { rulesFound } from "../messages/rules-found.ts";
import { snippetOf } from "./snippet.ts";
import { dedupeKeyOfId } from "../../inbound/mail-words.ts";

/** The most turns that a model is reminded of. */
const MAX_MEMORY_TURNS = 20;
const MAX_MEMORY_CHARS = 24_000;
/** The most bytes of a reply that is read whole: one of more has more characters than fit. */
const MAX_MEMORY_BYTES = 3 * MAX_MEMORY_CHARS;
/** Characters that are kept at each end of a longer text. */
const END_CHARS = 5_000;
const GAP = "\n\n[… the middle is left out …]\n\n";
const REPLY_TOKEN_CHARS = 20;
const TAG_BEGINS = "c_";
/** The most message ids of a References field that are looked up, newest first. */
const MAX_REFERENCES = 20;

export interface Turn {
  instruction: string;
  reply: string;
}

/** What a mail says about the thread it belongs to. */
export interface ThreadClues {
  /** The `+tag` of the recipient address. */
  tag: string | null;
  /** In-Reply-To, then References from the newest to the oldest. */
  parent_ids: string[];
  sender: string;
}

/**
 * The thread of a mail (decision M): by reply token if the sender is the participant it was made for, else by
 * the ids it answers if this sender took part. Never by subject.
 */
export async function findThread(
  app: App,
  tx: Db,
  inbox: InboxRow,
  clues: ThreadClues,
): Promise<Found | undefined> {
  const by_token = await threadOfToken(app, tx, inbox, clues);
  if (by_token !== undefined) return by_token;
  const conversation_id = await threadOfParents(tx, inbox, clues);
  return conversation_id === undefined ? undefined : { conversation_id, approval_id: null };
}

/** The thread of a mail, and the request for consent whose letter it answers, by its token alone. */
type Found = Pick<Thread, "conversation_id"> & { approval_id: string | null };

export async function startConversation(
  app: App,
  tx: Db,
  start: { inbox: InboxRow; subject: string },
): Promise<string> {
  const row: ConversationRow = {
    id: app.newId(),
    user_id: start.inbox.user_id,
    inbox_id: start.inbox.id,
    subject: start.subject,
    turn_count: 0,
    latest_sender: null,
    snippet: "",
    last_at: app.orderNow(),
    created: app.now(),
  };
  await insertRow(tx, "conversations", row);
  return row.id;
}

/** The user's own conversation in this inbox; `not_found` otherwise, 422 when it belongs to another inbox. */
export async function ownConversation(
  db: Db,
  user: UserRow,
  wanted: { id: string; inbox_id: string },
): Promise<string> {
  const row = await db
    .selectFrom("conversations")
    .select(["id", "inbox_id"])
    .where("id", "=", wanted.id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such conversation.");
  if (row.inbox_id !== wanted.inbox_id)
    throw invalid("body.conversation_id", "other_inbox", "This conversation belongs to another inbox.");
  return row.id;
}

/** The inbox of the user's own conversation; undefined if there is no such conversation, or its inbox is gone. */
export async function inboxOfConversation(db: Db, user: UserRow, id: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("conversations")
    .select("inbox_id")
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  return row?.inbox_id ?? undefined;
}

type Reminded = Pick<MessageRow, "id" | "conversation_id" | "authority" | "sender">;

/**
 * Instruction and reply of the latest finished turns, oldest first, within the memory's bounds. `found`: whether those are among them
 * that may tell what `@memory` has found.
 */
export async function recallTurns(
  db: Db,
  message: Reminded,
  { found = false }: { found?: boolean } = {},
): Promise<Turn[]> {
  const { id, conversation_id, authority, sender } = message;
  if (conversation_id === null) return [];
  const rows = (await turnsBefore(db, { id, conversation_id })).filter(
    // The owner is reminded of all of the owner's turns, by mail or by call, and everybody else only of what they were told.
    (row) =>
      row.authority === authority &&
      (authority === "owner" || (row.sender === sender && Boolean(row.answered))) &&
      (found || row.from_memory === 0),
  );
  const turns: Turn[] = [];
  let chars = 0;
  for (const { instruction, reply, rules } of rows) {
    if (reply === null) break;
    const order = rulesFound({ rules }).as_material === true ? null : instruction;
    const whole = { instruction: order ?? "", reply };
    const turn = fits(whole, chars)
      ? whole
      : { instruction: withoutMiddle(whole.instruction), reply: withoutMiddle(reply) };
    if (!fits(turn, chars)) break;
    chars += lengthOf(turn);
    turns.unshift(turn);
  }
  return turns;
}

function lengthOf({ instruction, reply }: Turn): number {
  return instruction.length + reply.length;
}

function fits(turn: Turn, chars: number): boolean {
  return chars + lengthOf(turn) <= MAX_MEMORY_CHARS;
}

/** A long text without its middle: so the latest turn always has room. */
function withoutMiddle(text: string): string {
  return text.length <= 2 * END_CHARS + GAP.length
    ? text
    : `${text.slice(0, END_CHARS)}${GAP}${text.slice(-END_CHARS)}`;
}

const turnsBefore = prepared((db, message: { id: string; conversation_id: string }) =>
  db
    .selectFrom("messages")
    .select((eb) => [
      "instruction",
      "rules",
      "authority",
      "sender",
      "from_memory",
      isAnswered(eb).as("answered"),
      // Only the ends of long answers are read: each may have a megabyte.
      eb
        .case()
        .when(eb.fn<number>("octet_length", ["result"]), "<=", MAX_MEMORY_BYTES)
        .then(eb.ref("result"))
        .else(
          eb(
            eb(eb.fn<string>("substr", ["result", eb.val(1), eb.val(END_CHARS)]), "||", GAP),
            "||",
            eb.fn<string>("substr", ["result", eb.val(-END_CHARS)]),
          ),
        )
        .end()
        .as("reply"),
    ])
    .where("conversation_id", "=", message.conversation_id)
    .where("state", "=", "done")
    .where("deleted_at", "is", null)
    // A private turn has no text.
    .where((eb) => eb(eb.fn<number>("octet_length", ["result"]), ">", 0))
    .where("id", "<", message.id)
    .orderBy("id", "desc")
    .limit(MAX_MEMORY_TURNS),
);

/**
 * Whether an earlier run of the conversation that this message's sender was told of may have told what `@memory` has found. It counts
 * when it is deleted as well: later turns may repeat it.
 */
export async function followsMemory(
  db: Db,
  { id, conversation_id, authority, sender }: Reminded,
): Promise<boolean> {
  if (conversation_id === null) return false;
  return (await memoryBefore(db, { id, conversation_id, authority, sender })).length > 0;
}

const memoryBefore = prepared((db, message: Reminded & { conversation_id: string }) =>
  db
    .selectFrom("messages")
    .select("id")
    .where("conversation_id", "=", message.conversation_id)
    .where("id", "<", message.id)
    // Written out, so that the index of these alone is used.
    .where((eb) => eb("from_memory", "=", eb.lit(1)))
    .where("state", "=", "done")
    .where("authority", "=", message.authority)
    .where((eb) => eb.or([eb("authority", "=", "owner"), eb("sender", "=", message.sender)]))
    .limit(1),
);

/** Whether a conversation has earlier messages than this one, other tries of it aside. */
export async function hasEarlierMessages(
  db: Db,
  { id, conversation_id, retry_of }: Pick<MessageRow, "id" | "conversation_id" | "retry_of">,
): Promise<boolean> {
  if (conversation_id === null) return false;
  return (await earlierMessage(db, { id, conversation_id, first: retry_of ?? id })).length > 0;
}

const earlierMessage = prepared((db, message: { id: string; conversation_id: string; first: string }) =>
  db
    .selectFrom("messages")
    .select("id")
    .where("conversation_id", "=", message.conversation_id)
    .where("id", "<", message.id)
    .where("id", "!=", message.first)
    .where((eb) => eb.or([eb("retry_of", "is", null), eb("retry_of", "!=", message.first)]))
    .limit(1),
);

/** Notes a finished turn on its conversation. */
export async function noteTurn(
  tx: Db,
  turn: { conversation_id: string | null; sender: string | null; reply: string; now: number },
): Promise<void> {
  if (turn.conversation_id === null) return;
  const { conversation_id: id, sender, now } = turn;
  await addTurn(tx, { id, sender, snippet: snippetOf(turn.reply), now });
}

const addTurn = prepared((db, turn: { id: string; sender: string | null; snippet: string; now: number }) =>
  db
    .updateTable("conversations")
    .set((eb) => ({
      turn_count: eb("turn_count", "+", 1),
      latest_sender: turn.sender,
      snippet: turn.snippet,
      last_at: turn.now,
    }))
    .where("id", "=", turn.id),
);

export interface Thread {
  conversation_id: string;
  participant: string;
  /** The request for consent that a letter is about: each has an address of its own. */
  approval_id?: string | null;
}

/** Whether an address looks like one of those for answers. */
export function isReplyAddress(address: string): boolean {
  return splitAddress(address).tag?.startsWith(TAG_BEGINS) ?? false;
}

/** The tag of a Reply-To address that continues this conversation, for this participant alone. */
export function replyTag(app: App, thread: Thread): string {
  return `${TAG_BEGINS}${tokenOf(app, thread)}`;
}

/** Stores the tag of a thread, so that a mail to it is recognised. */
export async function rememberReplyTag(
  app: App,
  tx: Db,
  thread: Thread,
  { rotations }: Pick<InboxRow, "rotations">,
): Promise<void> {
  const now = { rotation: rotations };
  await tx
    .insertInto("reply_tokens")
    .values({ token: tokenOf(app, thread), approval_id: null, ...thread, ...now })
    .onConflict((conflict) => conflict.column("token").doUpdateSet(now))
    .execute();
}

async function threadOfToken(
  app: App,
  tx: Db,
  inbox: InboxRow,
  clues: ThreadClues,
): Promise<Found | undefined> {
  if (!clues.tag?.startsWith(TAG_BEGINS)) return undefined;
  const token = clues.tag.slice(TAG_BEGINS.length);
  const row = await tx
    .selectFrom("reply_tokens")
    .innerJoin("conversations", "conversations.id", "reply_tokens.conversation_id")
    .select(["conversation_id", "participant", "approval_id"])
    .where("token", "=", token)
    .where("inbox_id", "=", inbox.id)
    .where("rotation", "=", inbox.rotations)
    .executeTakeFirst();
  if (!row || row.participant !== clues.sender) return undefined;
  return equalBytes(token, tokenOf(app, row)) ? row : undefined;
}

async function threadOfParents(tx: Db, inbox: InboxRow, clues: ThreadClues): Promise<string | undefined> {
  for (const id of clues.parent_ids.slice(0, MAX_REFERENCES)) {
    const found =
      (await threadOfReply(tx, inbox, { id, sender: clues.sender })) ??
      (await threadOfMail(tx, inbox, { id, sender: clues.sender }));
    if (found) return found;
  }
  return undefined;
}

/** The thread of a mail that answers a reply of ours to this sender. */
async function threadOfReply(
  tx: Db,
  inbox: InboxRow,
  parent: { id: string; sender: string },
): Promise<string | undefined> {
  const row = await tx
    .selectFrom("outgoing_mails")
    .innerJoin("messages", "messages.id", "outgoing_mails.message_id")
    .select("conversation_id")
    .where("outgoing_mails.rfc_message_id", "=", parent.id)
    .where("outgoing_mails.kind", "!=", "forward")
    .where("inbox_id", "=", inbox.id)
    .where("sender", "=", parent.sender)
    .executeTakeFirst();
  return row?.conversation_id ?? undefined;
}

/** The thread of a mail that answers an earlier mail of the same sender. */
async function threadOfMail(
  tx: Db,
  inbox: InboxRow,
  parent: { id: string; sender: string },
): Promise<string | undefined> {
  const row = await tx
    .selectFrom("messages")
    .select("conversation_id")
    .where("inbox_id", "=", inbox.id)
    .where("dedupe_key", "=", dedupeKeyOfId(parent.id, parent.sender))
    .where("sender", "=", parent.sender)
    .where("conversation_id", "is not", null)
    .executeTakeFirst();
  return row?.conversation_id ?? undefined;
}

function tokenOf(app: App, { conversation_id, participant, approval_id }: Thread): string {
  const about = [conversation_id, participant, approval_id].filter(Boolean).join(" ");
  return base32Token(app.secrets.hmac("reply", about), REPLY_TOKEN_CHARS);
}
