import type { App } from "../../../app.ts";
import type { IndexedMessageRow, MessageRow, RawMailRow, TEXT_FIELDS } from "../../../db/schema.ts";
import { folded, wordsIn } from "../../../lib/split-words.ts";
import { headersAs } from "../../../mail/reading/headers-as.ts";
import { decodeWords } from "../../../mail/reading/headers.ts";
import { addressOf } from "../../inboxes/addresses.ts";
import { isPrivate, mayAskForPrivacy } from "../forgotten.ts";
import { wordsOf } from "../material.ts";
import { tagsOf } from "../tags-of.ts";
import { isLost, KEPT, readBytes } from "../stored-bytes.ts";
import { storedAuth } from "../stored-auth.ts";
import { MB } from "../../../lib/sizes.ts";

/** The most characters that are indexed of one message, and of a field of which there may be much. */
const MAX_CHARS = 65_536;
const MAX_FIELD_CHARS = 24_576;
const MAX_LINE_CHARS = 2_000;
/**
 * The most different words that are indexed of one message: to forget one so that nothing of it is left in the file takes 25 µs,
 * and a message is forgotten in one transaction.
 */
const MAX_WORDS = 2_500;
/**
 * Which share of a message's words one word may have in the index, and how often it stands there in any case: a phrase goes
 * through all places of its words. A word of more is found in its first places.
 */
const MAX_SHARE = 1 / 10;
const MIN_REPEATS = 20;
/** How many files are read of one message, and how large they may be. */
const MAX_FILES = 10;
const MAX_FILE_BYTES = 5 * MB;
/** Files with nothing to read in them. */
const NO_TEXT = /^(?:image|audio|video)\//;

export type Texts = Pick<IndexedMessageRow, Exclude<(typeof TEXT_FIELDS)[number], "marks">> & {
  has_file: boolean;
};

/**
 * Reads what is indexed of a message that has ended: what it says, what came of it, and what its files say. Null for one that may
 * want to be private.
 */
export async function textsOf(app: App, message: MessageRow, signal: AbortSignal): Promise<Texts | null> {
  const { words, sender, recipients } = await cameWith(app, message);
  if (isPrivate(message) || mayAskForPrivacy(message, words)) return null;
  const files = await filesOf(app, message);
  const texts = {
    subject: lineOf(message.subject),
    sender: lineOf([message.sender ?? "", ...sender].join(" ")),
    recipient: lineOf([await inboxOf(app, message), ...recipients].join(" ")),
    tags: lineOf(tagsOf(message).map(tagWord).join(" ")),
    instruction: cut(message.instruction ?? "", MAX_FIELD_CHARS),
    result: cut(message.result, MAX_FIELD_CHARS),
  };
  const room = () => MAX_CHARS - Object.values(texts).reduce((sum, text) => sum + text.length, 0);
  const material = cut(words ?? "", room());
  const left = room() - material.length;
  const read = left > 0 ? await textsOfFiles(app, message, { files, signal }) : [];
  const names = files.map(({ filename }) => filename);
  const all = { ...texts, material, files: cut([...names, ...read].join("\n"), left) };
  return { ...withoutRepeats(upTo(MAX_WORDS, all)), has_file: files.length > 0 };
}

/** Cuts texts off, in their order, where they have more than so many different words. */
function upTo<Fields extends Record<string, string>>(count: number, texts: Fields): Fields {
  const seen = new Set<string>();
  const cut_off = Object.entries(texts).map(([name, text]) => {
    for (const { text: word, from } of wordsIn(text)) {
      if (seen.size === count && !seen.has(folded(word))) return [name, text.slice(0, from)];
      seen.add(folded(word));
    }
    return [name, text];
  });
  return Object.fromEntries(cut_off) as Fields;
}

/** Leaves words out where they stand again and again, see `MAX_SHARE`. */
function withoutRepeats<Fields extends Record<string, string>>(texts: Fields): Fields {
  const words = Object.entries(texts).map(([name, text]) => ({
    name,
    text,
    words: Array.from(wordsIn(text)),
  }));
  const most = Math.max(MIN_REPEATS, MAX_SHARE * words.reduce((sum, field) => sum + field.words.length, 0));
  const counts = new Map<string, number>();
  const kept = words.map(({ name, text, words }) => {
    const parts: string[] = [];
    let begin = 0;
    let end = 0;
    for (const { text: word, to } of words) {
      const plain = folded(word);
      const count = (counts.get(plain) ?? 0) + 1;
      counts.set(plain, count);
      if (count > most) {
        parts.push(text.slice(begin, end));
        begin = to;
      }
      end = to;
    }
    return [name, parts.join("") + text.slice(begin)];
  });
  return Object.fromEntries(kept) as Fields;
}

/** A tag as one word whatever signs it has: only a whole tag is found, or its beginning. */
export function tagWord(tag: string): string {
  return Buffer.from(tag.toLowerCase()).toString("hex");
}

/** Whether the words of a message are never looked up, also where its flags were never read. */
export async function mayBePrivate(app: App, message: MessageRow): Promise<boolean> {
  if (isPrivate(message)) return true;
  return message.command === null && mayAskForPrivacy(message, (await cameWith(app, message)).words);
}

interface Came {
  /** Undefined once they are not kept any more. */
  words: string | undefined;
  sender: string[];
  recipients: string[];
}

async function cameWith(app: App, message: MessageRow): Promise<Came> {
  const nothing = { words: undefined, sender: [], recipients: [] };
  if (message.raw_mail_id === null) {
    const contents = app.db.selectFrom("message_contents").select("content");
    const stored = await contents.where("message_id", "=", message.id).executeTakeFirst();
    return { ...nothing, words: stored?.content ?? "" };
  }
  const raw = await app.db
    .selectFrom("raw_mails")
    .selectAll()
    .where("id", "=", message.raw_mail_id)
    .where("purged_at", "is", null)
    .executeTakeFirst();
  return raw === undefined ? nothing : mailOf(app, message, raw);
}

async function mailOf(app: App, message: MessageRow, raw: RawMailRow): Promise<Came> {
  const bytes = await unlessLost(readBytes(app, "raw_mails", raw));
  if (bytes === null) return { words: undefined, sender: [], recipients: [] };
  const form = storedAuth(message).signed_form;
  const headers = headersAs(bytes, form);
  const outcome = await app.parser.parse(bytes, { form, account: message.user_id });
  const field = (name: string) => [lineOf(decodeWords(headers.get(name) ?? ""))];
  const parts = outcome.ok ? wordsOf(message, outcome.mail) : [outcome.text];
  // Before it was understood, nothing else has the words of whoever may instruct.
  if (outcome.ok && message.instruction === null) parts.unshift(outcome.mail.new_text);
  return {
    words: parts.filter((part) => part.trim() !== "").join("\n\n"),
    sender: field("from"),
    recipients: [...field("to"), ...field("cc")],
  };
}

type StoredFile = Awaited<ReturnType<typeof filesOf>>[number];

function filesOf({ db }: App, { id }: MessageRow) {
  return db
    .selectFrom("attachments")
    .select([...KEPT, "filename", "content_type", "purged_at"])
    .where("message_id", "=", id)
    .orderBy("id")
    .limit(MAX_FILES)
    .execute();
}

async function textsOfFiles(
  app: App,
  { user_id }: MessageRow,
  { files, signal }: { files: StoredFile[]; signal: AbortSignal },
): Promise<string[]> {
  const texts: string[] = [];
  for (const file of files) {
    if (file.purged_at !== null || file.size > MAX_FILE_BYTES || NO_TEXT.test(file.content_type)) continue;
    const bytes = await unlessLost(readBytes(app, "attachments", file));
    if (bytes === null) continue;
    const read = await app.files.read([{ ...file, bytes }], signal, { account: user_id, strangers: true });
    texts.push(...read.map(({ text }) => text));
  }
  return texts;
}

/** How its inbox is called, and its address. */
async function inboxOf({ db }: App, { inbox_id }: MessageRow): Promise<string> {
  if (inbox_id === null) return "";
  const inboxes = db.selectFrom("inboxes").select(["label", "local_part", "domain"]);
  const inbox = await inboxes.where("id", "=", inbox_id).executeTakeFirst();
  return inbox === undefined ? "" : `${inbox.label} ${addressOf(inbox)}`;
}

async function unlessLost(reading: Promise<Uint8Array | null>): Promise<Uint8Array | null> {
  try {
    return await reading;
  } catch (error) {
    if (isLost(error)) return null;
    throw error;
  }
}

function lineOf(text: string | null): string {
  return cut(text ?? "", MAX_LINE_CHARS);
}

function cut(text: string, chars: number): string {
  return text.slice(0, Math.max(0, chars)).toWellFormed();
}
