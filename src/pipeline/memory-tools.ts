import type { App } from "../app.ts";
import { prepared } from "../db/prepared.ts";
import { userById } from "../db/users.ts";
import type { InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { headOf } from "../lib/text-length.ts";
import { isAnswered } from "../resources/messages/answered.ts";
import { readStory } from "../resources/messages/story.ts";
import { mayBePrivate } from "../resources/messages/search/texts.ts";
import { searchMessages } from "../resources/messages/search/search.ts";
import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import { MEMORY_TARGET } from "../trust/target-names.ts";

const MAX_FOUND = 20;
const FOUND = 10;
/** How much of one text of a message is shown. */
const MAX_TEXT_CHARS = 12_000;

type Message = Pick<MessageRow, "id" | "user_id" | "authority" | "sender">;

interface Past {
  app: App;
  message: Message;
  inbox: Pick<InboxRow, "id">;
}

/**
 * Lets a model look through earlier messages: the owner's runs through all of the account, those of a listed sender through
 * that sender's own messages to this inbox which were answered to them. Nothing of private messages is found. What a model has
 * written comes back as well, but an address in it is known by that no more than before.
 */
export function memoryTools(app: App, message: Message, inbox: Pick<InboxRow, "id">): Tool[] {
  const past = { app, message, inbox };
  return [
    toolOf({
      name: "find_messages",
      description:
        'Finds earlier messages of this mailbox: mails and calls that came in, what was asked, and what was answered. The newest come first, each with its id and a part of its text. Words are looked for everywhere; "a phrase", begin*, -without, from:, to:, subject:, tag:, has:file, before:2026-01-31 and after:2026-01-31 narrow it. Read a message before you pass on a web address that stands in it.',
      properties: {
        query: { type: "string", minLength: 1, maxLength: 500 },
        limit: { type: "integer", minimum: 1, maximum: MAX_FOUND },
      },
      required: ["query"],
      work: (args) => findMessages(past, args as { query: string; limit?: number }),
    }),
    toolOf({
      name: "read_message",
      description:
        "Reads one of the messages that find_messages found: what was asked, what came with it, and the answer.",
      properties: { message_id: { type: "string", format: "uuid" } },
      required: ["message_id"],
      work: (args) => readMessage(past, args as { message_id: string }),
    }),
  ];
}

/** What is told of earlier messages, in parts; `known`: whether addresses in it count as read (see `ToolOutcome`). */
type Told = { text: string; known: boolean }[];

function toolOf({
  name,
  description,
  properties,
  required,
  work,
}: Pick<Tool, "name" | "description"> & {
  properties: Record<string, object>;
  required: string[];
  work: (args: Record<string, unknown>) => Promise<Told>;
}): Tool {
  return {
    target: MEMORY_TARGET,
    name,
    description,
    parameters: { type: "object", properties, required, additionalProperties: false },
    read_only: true,
    destructive: false,
    foreign: false,
    call: async (args, signal) => {
      signal.throwIfAborted();
      return outcomeOf(() => work(args));
    },
  };
}

async function outcomeOf(work: () => Promise<Told>): Promise<ToolOutcome> {
  try {
    const told = await work();
    return { ok: true, text: joined(told), known: joined(told.filter((part) => part.known)), files: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ok: false, text: error.message, files: [] };
  }
}

function joined(told: Told): string {
  return told.map(({ text }) => text).join("\n\n");
}

function known(text: string): Told {
  return [{ text, known: true }];
}

async function findMessages(
  { app, message, inbox }: Past,
  { query, limit = FOUND }: { query: string; limit?: number },
): Promise<Told> {
  const user = await ownerOf(app, message);
  const own = message.authority === "owner" ? {} : { inbox_id: inbox.id, answered_to: message.sender ?? "" };
  // One more than is shown, as the message that is being worked on may be among them.
  const { items } = await searchMessages(app, user, { q: query, ...own, limit: MAX_FOUND + 1 });
  const found = items.filter(({ message_id }) => message_id !== message.id).slice(0, limit);
  if (found.length === 0) return known("Nothing was found.");
  return found.flatMap(toldOf);
}

/** What is told of a message that was found. A part of it may be of an answer or of a file that a model has made, and may end inside of an address. */
function toldOf({ highlights, ...one }: Found): Told {
  const parts = highlights.map(({ field, text }) => ({ text: `  ${field}: ${text}`, known: false }));
  return known(headOfMessage(one, one.message_id)).concat(parts);
}

type Found = Awaited<ReturnType<typeof searchMessages>>["items"][number];

async function readMessage(past: Past, { message_id }: { message_id: string }): Promise<Told> {
  const { app, message } = past;
  const [row] = await shownOf(app.db, { id: message_id, user_id: message.user_id });
  if (!row || !mayRead(past, row) || (await mayBePrivate(app, row)))
    throw new AppError("not_found", "There is no such message.");
  const story = await readStory(app, await ownerOf(app, message), message_id);
  const part = (name: string, text: string | null): string[] =>
    text ? [`${name}:\n${headOf(text, MAX_TEXT_CHARS)}`] : [];
  return [
    ...known(headOfMessage(story)),
    ...part("What was asked", story.instruction).flatMap(known),
    ...part("What came with it", story.content).flatMap(known),
    ...part("The answer", story.result).map((text) => ({ text, known: false })),
  ];
}

type Shown = Awaited<ReturnType<typeof shownOf>>[number];

function mayRead({ message, inbox }: Past, row: Shown): boolean {
  if (message.authority === "owner") return true;
  return row.sender === message.sender && row.inbox_id === inbox.id && Boolean(row.answered);
}

const shownOf = prepared((db, key: { id: string; user_id: string }) =>
  db
    .selectFrom("messages")
    .selectAll()
    .select((eb) => isAnswered(eb).as("answered"))
    .where("id", "=", key.id)
    .where("user_id", "=", key.user_id),
);

async function ownerOf(app: App, { user_id }: Message): Promise<UserRow> {
  const [user] = await userById(app.db, { id: user_id });
  if (!user) throw new AppError("not_found", "There is no such account.");
  return user;
}

/** When a message came, from whom, and what became of it; with its id, where that is still to be told. */
function headOfMessage(
  of: { created: number; sender: string | null; subject: string | null; status: string },
  id?: string,
): string {
  const day = new Date(of.created * 1_000).toISOString().slice(0, 10);
  const line = `${day}, from ${of.sender ?? "a call"}, ${JSON.stringify(of.subject ?? "")}, ${of.status}`;
  return id === undefined ? line : `${id}: ${line}`;
}
