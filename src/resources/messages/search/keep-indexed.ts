import { setTimeout as sleep } from "node:timers/promises";
import { dirname } from "node:path";
import type { App } from "../../../app.ts";
import { databasePath } from "../../../db/database-path.ts";
import type { Db } from "../../../db/database.ts";
import { prepared } from "../../../db/prepared.ts";
import type { UnindexedMessageRow } from "../../../db/schema.ts";
import { LEFT_BYTES, leavesRoom } from "../../../db/reserve.ts";
import { isIndexDamage, isStorageFault } from "../../../db/storage-faults.ts";
import { hasDamagedPages, hasTextIndex, unqueuedMessages } from "../../../db/text-search.ts";
import { messageOf } from "../../../errors.ts";
import { restBusy } from "../../../lib/busy.ts";
import { markedText, markOf } from "../../../lib/split-words.ts";
import { messageById } from "../messages.ts";
import { roomFor } from "./places.ts";
import { type Texts, textsOf } from "./texts.ts";

/** How often it is looked whether anything waits. */
const LOOK_MS = 2_000;
const AFTER_FAULT_MS = 15_000;
/** How many messages of one account are indexed before it is another's turn. */
const MESSAGES = 20;
/** How many messages are put into the queue at once after the index was made anew. */
const QUEUED = 500;
/** How much text one transaction indexes, give or take one message: a few milliseconds of this thread. */
const MAX_CHARS = 16_384;
/** The rest after work, as many times as long: while the server does something else, and while it does not. */
const REST = { busy: 80, idle: 1 };
const MIN_REST_MS = 10;
const MAX_REST_MS = 3_000;

/** Has the words of messages found that have ended, and lets everything else go first. Disposing it waits for its last step. */
export function keepIndexed(app: App): AsyncDisposable {
  const stop = new AbortController();
  const done = indexUntil(app, stop.signal);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await done;
    },
  };
}

async function indexUntil(app: App, signal: AbortSignal): Promise<void> {
  let busy = false;
  while (!signal.aborted) {
    const began = performance.now();
    const more = await tryIndexing(app, signal);
    const took = performance.now() - began;
    const rest = Math.min(MAX_REST_MS, Math.max(MIN_REST_MS, took * (busy ? REST.busy : REST.idle)));
    busy = await restBusy(() => restFor(more ?? AFTER_FAULT_MS, rest, signal));
  }
}

/** Rests until there is more to do; `more` in milliseconds is how long a fault lasts at least. */
async function restFor(more: boolean | number, rest: number, signal: AbortSignal): Promise<void> {
  const ms = typeof more === "number" ? more : more ? rest : LOOK_MS;
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

/** Undefined where it failed: that is tried again later. */
async function tryIndexing(app: App, signal: AbortSignal): Promise<boolean | undefined> {
  try {
    return await indexSome(app, signal);
  } catch (error) {
    if (signal.aborted) return false;
    if (isIndexDamage(error)) await app.upkeep.renewIndex().catch(() => undefined);
    // What the disk does is said elsewhere.
    if (!isStorageFault(error)) app.log.warn({ problem: messageOf(error) }, "messages were not indexed");
    return undefined;
  }
}

/** Indexes some messages of the account whose turn it is, the newest first. Returns false when none wait. */
export async function indexSome(app: App, signal = new AbortController().signal): Promise<boolean> {
  if (!(await hasTextIndex(app.db)) || !(await hasRoom(app))) return false;
  const is_queueing = await queueSome(app);
  const after = turns.get(app) ?? "";
  const [next] = await nextAccount(app.db, { after });
  if (!next) {
    turns.delete(app);
    return is_queueing || after !== "";
  }
  turns.set(app, next.user_id);
  const waiting = await waitingOf(app.db, next);
  let read: Read[] = [];
  let chars = 0;
  for (const one of waiting) {
    if (signal.aborted) break;
    const texts = await readTexts(app, one, signal);
    read.push({ ...one, texts });
    chars += texts === null ? 0 : lengthOf(texts);
    if (chars < MAX_CHARS) continue;
    await store(app, read);
    [read, chars] = [[], 0];
  }
  if (read.length > 0) await store(app, read);
  return true;
}

/** Whether the disk has room for more of the index than what is left for mail; says so where it has none any more. */
async function hasRoom(app: App): Promise<boolean> {
  const has_room = await leavesRoomIn(app);
  if (!has_room && !roomless.has(app)) app.log.warn({}, NO_ROOM);
  if (has_room) roomless.delete(app);
  else roomless.add(app);
  return has_room;
}

/** Those servers whose log says that there is no room. */
const roomless = new WeakSet<App>();

const NO_ROOM = `Messages are not indexed for the search: less than ${LEFT_BYTES / 1_048_576} MB are free on the disk of the database, which are left for mail. What the server knows of them is found; it goes on by itself once there is room.`;

async function leavesRoomIn({ config }: App): Promise<boolean> {
  const path = databasePath(config.database.url);
  return path === ":memory:" || leavesRoom(dirname(path));
}

/** Says what keeps messages from being found by all of their words; undefined while nothing does. */
export async function searchWarning(app: App): Promise<string | undefined> {
  if (!(await hasTextIndex(app.db))) return NONE;
  const unqueued = await unqueuedMessages(app.db, {});
  const [waiting] = await nextAccount(app.db, { after: "" });
  if ((waiting || unqueued.length > 0) && !(await leavesRoomIn(app))) return NO_ROOM;
  if (unqueued.length > 0) return ANEW;
  return (await hasDamagedPages(app.db)) ? OLD_PAGES : undefined;
}

const NONE =
  "The index of words was damaged, and there is no other yet: messages are found by what the server knows of them. To have one made: stop the server, mailwright backup FILE, mailwright restore FILE.";
const OLD_PAGES =
  "A damaged index of words was set aside, and its pages still take room in the database; what they say of messages that are deleted stays there as well. To have them gone: stop the server, mailwright backup FILE, mailwright restore FILE.";
const ANEW =
  "The index of words is being made anew: until a message is in it, it is found by what the server knows of it.";

/**
 * Puts some of those messages into the queue that are in none since the index was made anew, the newest first. Returns false
 * when all are.
 */
async function queueSome(app: App): Promise<boolean> {
  const [unqueued] = await unqueuedMessages(app.db, {});
  if (!unqueued) return false;
  await app.write(
    async (tx) => {
      const older = tx.selectFrom("messages").select("id").where("id", "<", unqueued.below);
      const last = await older
        .orderBy("id", "desc")
        .offset(QUEUED - 1)
        .limit(1)
        .executeTakeFirst();
      await tx
        .insertInto("unindexed_messages")
        .columns(["user_id", "message_id"])
        .expression(
          older
            .clearSelect()
            .select(["user_id", "id"])
            .where("id", ">=", last?.id ?? "")
            .where("state", "<>", "received")
            .where("deleted_at", "is", null),
        )
        .onConflict((conflict) => conflict.doNothing())
        .execute();
      if (last) await tx.updateTable("unqueued_messages").set({ below: last.id }).execute();
      else await tx.deleteFrom("unqueued_messages").execute();
    },
    { promises: false },
  );
  return true;
}

/** By server, the account that was served last. */
const turns = new WeakMap<App, string>();

type Waiting = Pick<UnindexedMessageRow, "user_id" | "message_id"> & { turn: number };
type Read = Waiting & { texts: Texts | null };

const nextAccount = prepared((db, key: { after: string }) =>
  db
    .selectFrom("unindexed_messages")
    .select("user_id")
    .where("user_id", ">", key.after)
    .orderBy("user_id")
    .limit(1),
);

const waitingOf = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("unindexed_messages")
    .select(["user_id", "message_id", "turn"])
    .where("user_id", "=", key.user_id)
    .orderBy("message_id", "desc")
    .limit(MESSAGES),
);

/** The texts of a message; null where none are to be found. */
async function readTexts(app: App, { message_id }: Waiting, signal: AbortSignal): Promise<Texts | null> {
  const [message] = await messageById(app.db, { id: message_id });
  if (!message || message.state === "received" || message.deleted_at !== null) return null;
  try {
    return await textsOf(app, message, signal);
  } catch (error) {
    if (signal.aborted || isStorageFault(error)) throw error;
    // Others wait behind it.
    app.log.warn({ message_id, problem: messageOf(error) }, "a message cannot be read, and is not indexed");
    return null;
  }
}

/** A power cut may undo it: then the messages wait again. */
function store(app: App, read: Read[]): Promise<void> {
  return app.write(
    async (tx) => {
      for (const { texts, turn, ...message } of read) {
        // What changed meanwhile has another turn, or is gone: nothing that was read before counts.
        const [mine] = await takeTurn(tx, { ...message, turn });
        if (mine) await storeTexts(tx, message, texts);
      }
    },
    { promises: false },
  );
}

const takeTurn = prepared((db, key: Waiting) =>
  db
    .deleteFrom("unindexed_messages")
    .where("user_id", "=", key.user_id)
    .where("message_id", "=", key.message_id)
    .where("turn", "=", key.turn)
    .returning("turn"),
);

async function storeTexts(
  tx: Db,
  { user_id, message_id }: Pick<Waiting, "user_id" | "message_id">,
  texts: Texts | null,
): Promise<void> {
  await forgetTexts(tx, { message_id });
  if (texts === null) return;
  const { place, slot } = await roomFor(tx, { user_id, id: message_id }, lengthOf(texts));
  const mark = markOf(slot);
  const { has_file, ...fields } = texts;
  const marked = Object.entries({ marks: has_file ? "all file" : "all", ...fields }).map(
    ([name, text]) => [name, markedText(text, mark)] as const,
  );
  const row = Object.fromEntries(marked) as Record<"marks" | keyof typeof fields, string>;
  await tx
    .insertInto("indexed_messages")
    .values({ place, message_id, slot, ...row })
    .execute();
  await tx
    .insertInto("message_texts")
    .values({ rowid: place, ...row })
    .execute();
}

const forgetTexts = prepared((db, key: { message_id: string }) =>
  db.deleteFrom("indexed_messages").where("message_id", "=", key.message_id),
);

function lengthOf(read: Texts): number {
  const { has_file: _, ...texts } = read;
  return Object.values(texts).reduce((sum, text) => sum + text.length, 0);
}
