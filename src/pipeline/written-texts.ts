import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import { WRITTEN_TEXT_BYTES } from "../db/stored-sum.ts";
import { DAY_SECONDS } from "../lib/durations.ts";
import { sha256Bytes } from "../lib/sha256.ts";
import { TOO_MUCH, textsIn as allTextsIn } from "../trust/guard/packed/texts.ts";
import { togetherIn } from "../trust/guard/packed/together.ts";
import { shortOnes, stretchesOf } from "./short-texts.ts";
import { MIN_ALONE_LETTERS, meetingsIn } from "./text-meetings.ts";
import {
  MAX_CHARS,
  MAX_SPAN_LETTERS,
  allSpansOf,
  linesAndParagraphsOf,
  longerThan,
  plainOf,
  runsOf,
  spansIn,
  spansOf,
  wholes,
  withoutMarks,
  wordsOf,
} from "./text-parts.ts";
import { bareLetters } from "../lib/bare-letters.ts";
import { isPacked, mayBeMail, mayBeMarkdown, wordsOfMail } from "../trust/guard/shown-words.ts";

/** How long it is known what tools have written: a mail of theirs comes back within days, if it does. */
export const WRITTEN_SECONDS = 30 * DAY_SECONDS;
/** Fewer letters of a part of a text are everybody's words. */
const MIN_PART_LETTERS = 20;
/** What is remembered of a place where two texts meet takes as much room as some words do. */
const MEETING_WORDS = 4;
/** More words in one run are not remembered, and so not written; those of HTML count twice. */
const MAX_WORDS = 8_000;
/** Two words and a comma, above the words of a mail. */
const GREETING = /^\s*\p{L}{1,20}(?: \p{L}{1,20})?,\s*$/u;
const HASH_BYTES = 16;
const ROWS = 2_000;

/** Noted of each call that the owner has not read before it was made. */
export const UNSEEN = sha256Bytes("a text that the owner has not read").subarray(0, HASH_BYTES);

/** Returned for a call that is to write more than can be remembered. */
export const TOO_LONG = "too long";

/** How much the tools of a run may still be given to write. */
export interface WritingRoom {
  words: number;
  chars: number;
}

export function writingRoom(): WritingRoom {
  return { words: MAX_WORDS, chars: MAX_CHARS };
}

/** What is to be noted of a call, its hashes one behind the other, and what they take of the room of the run. */
export interface ToNote {
  hashes: Uint8Array;
  /** Those of the words that are surely those of the message's author. */
  own_hashes: Uint8Array;
  takes: WritingRoom;
}

/**
 * Returns what is to be noted of a call by which a tool of others is to write: hashes of its texts, and apart from them
 * those of what `own` has, the words that are surely those of the message's author.
 */
export async function hashesToNote({
  args,
  own,
  room,
}: {
  args: Record<string, unknown>;
  own: string;
  room: WritingRoom;
}): Promise<ToNote | typeof TOO_LONG> {
  // Parsers of HTML and of Markdown would stay in memory from the start.
  const { wordsInHtml } = await import("../trust/own-words/html-words.ts");
  const { splitNewText } = await import("../trust/own-words/reply-text.ts");
  const { markdownAsHtml } = await import("../mail/writing/markdown.ts");
  const unpacked = unpackedIn(args);
  if (unpacked === TOO_LONG) return TOO_LONG;
  const whole = [...textsIn(args), ...unpacked].map((text) => text.trim());
  const given = whole.filter((text) => !isPacked(text));
  const chars = given.reduce((sum, { length }) => sum + length, 0);
  if (chars > room.chars) return TOO_LONG;
  // What is hidden in HTML, or written as an entity, does not come back as it was written.
  const readingsOf = (some: string[]): string[] =>
    [...new Set(some.flatMap((text) => [text, wordsInHtml(text)]))].map(plainOf);
  const written = readingsOf(given);
  const meetings = meetingsIn(args);
  const words = written.reduce((sum, text) => sum + wordsOf(text).length, MEETING_WORDS * meetings.length);
  if (words > room.words) return TOO_LONG;
  const mailed = (await Promise.all(given.filter(mayBeMail).map(wordsOfMail))).flat();
  // These are the same words once more, and take no room of their own.
  const together = togetherIn(args).map(({ text }) => text.trim().slice(0, MAX_CHARS));
  const texts = [...given, ...mailed.map((text) => text.trim()), ...together];
  // No program but one for files takes these apart, and a mail may show them as they are.
  const packed = whole.filter(isPacked);
  const marked = [...texts, ...packed].filter((text) => text.includes("<")).map(withoutMarks);
  const all = [...written, ...readingsOf([...mailed, ...together]), ...marked];
  // A program may make HTML of Markdown: its words are others only where a mark parts them, or leads somewhere.
  const known = new Set(all.map((text) => wordsOf(text).join(" ")));
  const pages = texts
    .filter(mayBeMarkdown)
    .map(markdownAsHtml)
    .map((page) => ({ page, text: plainOf(wordsInHtml(page)) }))
    .filter(({ text }) => !known.has(wordsOf(text).join(" ")));
  const letters = bareLetters(own);
  const own_runs = new Set(runsOf(own));
  const own_short = new Set(stretchesOf(own));
  // What the model writes below them as a quote or a signature is none of the words that would come back.
  const ownIn = (body: { html: string } | { text: string }): string[] =>
    [false, true].map((fresh) => plainOf(splitNewText(body, { fresh }).new_text));
  const alone = [
    ...texts.flatMap((text) => [...ownIn({ html: text }), ...ownIn({ text })]),
    ...pages.flatMap(({ page }) => ownIn({ html: page })),
  ];
  const each = [...new Set([...all, ...pages.map(({ text }) => text), ...alone])];
  const parts = [
    ...wholes([...each, ...packed]),
    ...longerThan([...each, ...packed].flatMap(linesAndParagraphsOf), MIN_PART_LETTERS),
    ...[...texts, ...packed].flatMap(spansOf),
    ...meetings.flat(),
  ];
  const noted = [
    ...parts.map((text) => ({ text, is_own: letters.includes(text) })),
    ...each.flatMap(runsOf).map((text) => ({ text, is_own: own_runs.has(text) })),
    ...shortOnes([...texts, ...mailed, ...alone]).map((text) => ({ text, is_own: own_short.has(text) })),
  ];
  return { ...hashesOf(noted), takes: { words, chars } };
}

function hashesOf(noted: { text: string; is_own: boolean }[]): Omit<ToNote, "takes"> {
  const { own_ones = [], others = [] } = Object.groupBy(noted, ({ is_own }) =>
    is_own ? "own_ones" : "others",
  );
  return { hashes: joined(others), own_hashes: joined(own_ones) };
}

function joined(noted: { text: string }[]): Uint8Array {
  return new Uint8Array(Buffer.concat(hashed(noted.map(({ text }) => text))));
}

/** The bytes that an account stores for what is noted, as its triggers count them. */
export function bytesToNote({ hashes, own_hashes }: ToNote): number {
  return ((hashes.length + own_hashes.length) / HASH_BYTES) * WRITTEN_TEXT_BYTES;
}

/** Notes what a tool was given to write, and by whose own words if not by others', in the transaction that notes its call. */
export async function noteWritten(
  app: App,
  tx: Db,
  { user_id, hashes, author }: { user_id: string; hashes: Uint8Array; author: string | null },
): Promise<void> {
  const created = app.now();
  for (let from = 0; from < hashes.length; from += ROWS * HASH_BYTES) {
    const count = Math.min(ROWS, (hashes.length - from) / HASH_BYTES);
    const rows = Array.from({ length: count }, (_, index) => {
      const at = from + index * HASH_BYTES;
      return { id: app.newId(), user_id, hash: hashes.subarray(at, at + HASH_BYTES), created, author };
    });
    await tx.insertInto("written_texts").values(rows).execute();
  }
}

/**
 * Whether a tool was given some of these words to write, before the mail came, in a run of the account or of the
 * sender's own, and not as words of the sender: a tool that answers mail by its number may have answered one of ours, in the name of the owner.
 */
export async function isWrittenByTool(app: App, message: Came, texts: string[]): Promise<boolean> {
  return isNoted(app, message, () => {
    const words = texts.flatMap((text) => [plainOf(text), withoutMarks(text)]);
    return [
      ...wholes(words),
      ...longerThan(words.flatMap(linesAndParagraphsOf), MIN_ALONE_LETTERS),
      ...words.flatMap(runsOf),
      ...texts.flatMap(allSpansOf),
      ...words.flatMap((text) => spansIn(bareLetters(text).slice(0, MAX_SPAN_LETTERS), 1)),
    ];
  });
}

type Came = Pick<MessageRow, "user_id" | "sender" | "raw_mail_id">;

/** Whether anything at all is noted for an account or a sender's own: for most mails nothing has to be hashed. */
const anyNoted = prepared((db, { user_id, sender }: { user_id: string; sender: string }) =>
  db
    .selectFrom("written_texts")
    .select("written_texts.id")
    .where((eb) =>
      eb.or([
        eb("user_id", "=", user_id),
        eb("user_id", "in", eb.selectFrom("users").select("users.id").where("email", "=", sender)),
      ]),
    )
    .limit(1),
);

async function isNoted(
  app: App,
  { user_id, sender, raw_mail_id }: Came,
  partsOf: () => string[],
): Promise<boolean> {
  if ((await anyNoted(app.db, { user_id, sender: sender ?? "" })).length === 0) return false;
  const hashes = hashed(partsOf());
  const users = app.db
    .selectFrom("users")
    .select("id")
    .where("email", "=", sender ?? "");
  const came = app.db
    .selectFrom("raw_mails")
    .select("created")
    .where("id", "=", raw_mail_id ?? "");
  for (let from = 0; from < hashes.length; from += ROWS) {
    const known = app.db
      .selectFrom("written_texts")
      .select("id")
      .where("hash", "in", hashes.slice(from, from + ROWS))
      .where((eb) => eb.or([eb("user_id", "=", user_id), eb("user_id", "in", users)]))
      .where((eb) => eb.or([eb("author", "is", null), eb("author", "!=", sender ?? "")]))
      .where("created", "<=", came)
      .where("created", ">", app.calmNow() - WRITTEN_SECONDS);
    if ((await known.limit(1).executeTakeFirst()) !== undefined) return true;
  }
  return false;
}

/**
 * Whether a tool has written anything for an account of late, in a run that had read words of others, without its owner having read
 * it: then a short word in the owner's name may be the tool's.
 */
export async function hasUnseenWriting(app: App, user_id: string): Promise<boolean> {
  const [row] = await unseen(app.db, { user_id, after: app.calmNow() - WRITTEN_SECONDS });
  return row !== undefined;
}

interface Unseen {
  user_id: string;
  after: number;
}

const unseen = prepared(unseenSince);

const unseenBefore = prepared((db, key: Unseen & { raw_mail_id: string }) =>
  unseenSince(db, key).where("created", "<=", (eb) =>
    eb.selectFrom("raw_mails").select("raw_mails.created").where("raw_mails.id", "=", key.raw_mail_id),
  ),
);

function unseenSince(db: Db, { user_id, after }: Unseen) {
  return db
    .selectFrom("written_texts")
    .select("written_texts.id")
    .where("hash", "=", UNSEEN)
    .where("user_id", "=", user_id)
    .where("created", ">", after)
    .limit(1);
}

/**
 * Whether a tool may have mailed these words in the name of the account's owner, too few for it to be known: they begin with a line,
 * below a greeting, that is too short to be remembered by itself, and a program may have added a closing; or they have a short text
 * that a tool was given to write, between words of a program.
 */
export async function mayBeOfTool(app: App, message: Came, text: string): Promise<boolean> {
  const [first = "", second = ""] = plainOf(text)
    .split("\n")
    .filter((line) => line.trim() !== "");
  const line = GREETING.test(first) && second !== "" ? second : first;
  const begins_known = longerThan([line], MIN_PART_LETTERS).length + runsOf(line).length > 0;
  if (begins_known) return isNoted(app, message, () => stretchesOf(plainOf(text)));
  const { user_id, raw_mail_id } = message;
  const [before] = await unseenBefore(app.db, {
    user_id,
    after: app.calmNow() - WRITTEN_SECONDS,
    raw_mail_id: raw_mail_id ?? "",
  });
  return before !== undefined;
}

function hashed(parts: string[]): Buffer[] {
  return [...new Set(parts)].map((letters) => sha256Bytes(letters).subarray(0, HASH_BYTES));
}

/** The words that programs take out of the texts of a call, such as those of a mail in base64, where they do not stand there as they are. */
function unpackedIn(args: Record<string, unknown>): string[] | typeof TOO_LONG {
  const whole = textsIn(args).join("\n");
  const unpacked: string[] = [];
  for (const given of allTextsIn(args)) {
    if (given === TOO_MUCH) return TOO_LONG;
    const { packed, value } = given;
    if (packed && typeof value === "string" && !whole.includes(value)) unpacked.push(value);
  }
  return unpacked;
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
