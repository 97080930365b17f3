import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow } from "../db/schema.ts";
import { DAY_SECONDS } from "../lib/durations.ts";
import { sha256Bytes } from "../lib/sha256.ts";
import { lettersOf } from "../trust/own-words/given-subject.ts";

/** How long it is known what tools have written: a mail of theirs comes back within days, if it does. */
export const WRITTEN_SECONDS = 30 * DAY_SECONDS;
/** Fewer letters of a whole text, and of a part of one, are everybody's words. */
const MIN_LETTERS = 12;
const MIN_PART_LETTERS = 20;
const HASH_BYTES = 16;
/** How much of a text is looked at, in a call and in a mail alike. */
const MAX_CHARS = 65_536;
const MAX_PARTS = 300;
const TAG = /<[^<>]{0,500}>/g;

/** Notes what a tool of others is given to write while words of others are in the run, but for what the message itself says. */
export async function noteWritten(
  app: App,
  tx: Db,
  written: { user_id: string; args: Record<string, unknown>; said: string },
): Promise<void> {
  const asked = lettersOf(written.said);
  // A parser of HTML would stay in memory from the start.
  const { wordsInHtml } = await import("../trust/own-words/html-words.ts");
  const texts = textsIn(written.args).map((text) => text.slice(0, MAX_CHARS));
  // What is hidden in HTML, or written as an entity, does not come back as it was written.
  const all = new Set(texts.flatMap((text) => [text, wordsInHtml(text)]));
  const hashes = hashesOf([...all], (letters) => !asked.includes(letters));
  if (hashes.length === 0) return;
  const { user_id } = written;
  const created = app.now();
  const rows = hashes.map((hash) => ({ id: app.newId(), user_id, hash, created }));
  await tx.insertInto("written_texts").values(rows).execute();
}

/**
 * Whether a tool was given these words to write, or a line of them, in a run of the account or of the sender's own: a
 * tool that answers mail by its number may have answered one of ours, in the name of the owner.
 */
export async function isWrittenByTool(
  app: App,
  { user_id, sender }: Pick<MessageRow, "user_id" | "sender">,
  words: string,
): Promise<boolean> {
  const hashes = hashesOf([words]);
  if (hashes.length === 0) return false;
  const users = app.db
    .selectFrom("users")
    .select("id")
    .where("email", "=", sender ?? "");
  const known = app.db
    .selectFrom("written_texts")
    .select("id")
    .where("hash", "in", hashes)
    .where((eb) => eb.or([eb("user_id", "=", user_id), eb("user_id", "in", users)]))
    .where("created", ">", app.calmNow() - WRITTEN_SECONDS);
  return (await known.limit(1).executeTakeFirst()) !== undefined;
}

/** The hashes of texts, of their paragraphs and of their lines, by their letters alone: a program that mails them wraps lines. */
function hashesOf(texts: string[], counts: (letters: string) => boolean = () => true): Buffer[] {
  const parts = new Set<string>();
  for (const text of texts) {
    const plain = text.slice(0, MAX_CHARS).replaceAll(TAG, "\n");
    for (const part of [plain, ...plain.split(/\n[ \t\r]*\n/), ...plain.split("\n")]) {
      const letters = lettersOf(part);
      const min = part === plain ? MIN_LETTERS : MIN_PART_LETTERS;
      if (letters.length >= min && parts.size < MAX_PARTS) parts.add(letters);
    }
  }
  return [...parts].filter(counts).map((letters) => sha256Bytes(letters).subarray(0, HASH_BYTES));
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
