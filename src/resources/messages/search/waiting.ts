import type { App } from "../../../app.ts";
import type { Db } from "../../../db/database.ts";
import { prepared } from "../../../db/prepared.ts";
import type { MessageRow } from "../../../db/schema.ts";
import { hasTextIndex, unqueuedMessages } from "../../../db/text-search.ts";
import { NOT_DONE } from "../../../db/unfinished.ts";
import { messageOf } from "../../../errors.ts";
import { addressOf } from "../../inboxes/addresses.ts";
import { isPrivate, mayAskForPrivacy } from "../forgotten.ts";
import { tagsOf } from "../tags-of.ts";
import { type Fields, fitsQuery } from "./fits.ts";
import type { SearchQuery } from "./query.ts";
import { tagWord } from "./texts.ts";

/**
 * How long one page looks for messages beside the index, without what it waits for others, who have their turn between any
 * two steps. After an upgrade all messages wait: whoever looks far back then should not need a hundred pages.
 */
const PAGE_MS = 200;
/** Ids that are held against all other filters at once, and messages that are read at once. */
const IDS_AT_ONCE = 500;
const READ_AT_ONCE = 25;
/** As much of a field as is indexed. */
const MAX_FIELD_CHARS = 24_576;

/** Comes behind every id. */
const BEHIND_ALL = "~";

/** Ids from `from`, which is included, to `below`, which is not. */
interface Range {
  from: string;
  below: string;
}

/** What was found, newest first; `reached` is the id down to which everything was looked at if that is not the whole range. */
export interface Waiting {
  found: string[];
  reached?: string;
}

interface Looked {
  query: SearchQuery;
  range: Range;
  count: number;
  /** Returns those of the ids that fit all other filters. */
  others: (ids: string[]) => Promise<string[]>;
}

/**
 * Finds messages of an account that are not in the index: those that are worked on, and those that wait to be indexed. What
 * they came with is not read, only what the server knows of them.
 */
export async function findWaiting(
  app: App,
  user_id: string,
  { query, range, count, others }: Looked,
): Promise<Waiting> {
  const found: string[] = [];
  const inboxes = query.terms.some((term) => term.in === "to") ? await inboxesOf(app.db, user_id) : new Map();
  const look = async (ids: string[]): Promise<number> => {
    let took_ms = 0;
    await app.reads({ who: user_id }, async () => {
      const began = performance.now();
      const rows = await readRows(app.db, ids);
      const fit = rows.filter((row) => fits(app, row, { query, inboxes }));
      found.push(...fit.map(({ id }) => id));
      took_ms = performance.now() - began;
    });
    return took_ms;
  };
  let { below } = range;
  let left_ms = PAGE_MS;
  for (;;) {
    const began = performance.now();
    const ids = await waitingIds(app.db, user_id, { ...range, below });
    const fitting = (await others(ids)).toSorted().toReversed();
    left_ms -= performance.now() - began;
    for (let at = 0; at < fitting.length; at += READ_AT_ONCE) {
      const some = fitting.slice(at, at + READ_AT_ONCE);
      left_ms -= await look(some);
      if (found.length >= count) return { found };
      below = some.at(-1) ?? below;
      if (left_ms <= 0) return { found, reached: below };
    }
    if (ids.length < IDS_AT_ONCE) return { found };
    below = ids.at(-1) ?? below;
    if (left_ms <= 0) return { found, reached: below };
  }
}

/** The newest messages that the index does not have, `IDS_AT_ONCE` at most. */
async function waitingIds(db: Db, user_id: string, range: Range): Promise<string[]> {
  const { has_queue, below } = await queueOf(db);
  const of_account = (state: "=" | "<>") =>
    db
      .selectFrom("messages")
      .select("messages.id")
      .where("user_id", "=", user_id)
      .where("state", state, "received")
      .where("id", "<", range.below)
      .where("id", ">=", range.from)
      .orderBy("id", "desc")
      .limit(IDS_AT_ONCE);
  const found = [
    await of_account("=").where(NOT_DONE).execute(),
    has_queue ? await queuedIds(db, { user_id, ...range }) : [],
    below === undefined ? [] : await of_account("<>").where("id", "<", below).execute(),
  ];
  const ids = new Set(found.flat().map(({ id }) => id));
  return [...ids].toSorted().toReversed().slice(0, IDS_AT_ONCE);
}

/** Whether messages wait in a queue, and the id below which those that are not in the index are in no queue yet. */
async function queueOf(db: Db): Promise<{ has_queue: boolean; below?: string }> {
  if (!(await hasTextIndex(db))) return { has_queue: false, below: BEHIND_ALL };
  const [unqueued] = await unqueuedMessages(db, {});
  return { has_queue: true, ...unqueued };
}

/** Apart from what is read of the messages themselves: where it is damaged, the index of words is. */
const queuedIds = prepared((db, key: Range & { user_id: string }) =>
  db
    .selectFrom("unindexed_messages")
    .select("message_id as id")
    .where("user_id", "=", key.user_id)
    .where("message_id", "<", key.below)
    .where("message_id", ">=", key.from)
    .orderBy("message_id", "desc")
    .limit(IDS_AT_ONCE),
);

type Row = Awaited<ReturnType<typeof readRows>>[number];

function readRows(db: Db, ids: string[]) {
  return db
    .selectFrom("messages")
    .select([
      "id",
      "inbox_id",
      "subject",
      "sender",
      "command",
      "tags",
      "state",
      "reason",
      "authority",
      "raw_mail_id",
    ])
    .select((eb) => [
      eb.fn<string | null>("substr", ["instruction", eb.lit(1), eb.lit(MAX_FIELD_CHARS)]).as("instruction"),
      eb.fn<string>("substr", ["result", eb.lit(1), eb.lit(MAX_FIELD_CHARS)]).as("result"),
      eb
        .exists(eb.selectFrom("attachments").select("id").whereRef("message_id", "=", "messages.id"))
        .as("has_file"),
    ])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
}

/** A message of which something cannot be read is not found, and keeps no other from being found. */
function fits(
  app: App,
  row: Row,
  { query, inboxes }: { query: SearchQuery; inboxes: Map<string, string> },
): boolean {
  try {
    return (
      !isPrivate(row) &&
      !mayAskForPrivacy(row, wordsOf(row)) &&
      hasFile(query, row) &&
      fitsQuery(query, fieldsOf(row, inboxes))
    );
  } catch (error) {
    app.log.warn({ message_id: row.id, problem: messageOf(error) }, "a message could not be searched");
    return false;
  }
}

/**
 * What a message that waits for the index is known to say. The words of a mail that ended before it was understood are known once they
 * are in it.
 */
function wordsOf({ raw_mail_id, state }: Row): string | undefined {
  return raw_mail_id === null || state === "received" ? "" : undefined;
}

function hasFile({ has_file }: SearchQuery, row: Row): boolean {
  return !has_file || Boolean(row.has_file);
}

function fieldsOf(row: Row, inboxes: Map<string, string>): Fields {
  return { ...knownFields(row), recipient: inboxes.get(row.inbox_id ?? "") ?? "" };
}

/** What the row of a message says in the fields of the index. */
export function knownFields(
  row: Pick<MessageRow, "subject" | "sender" | "instruction" | "result" | "command" | "tags">,
): Fields {
  return {
    subject: textOf(row.subject),
    sender: textOf(row.sender),
    tags: tagsOf(row).map(tagWord).join(" "),
    instruction: textOf(row.instruction),
    result: textOf(row.result),
  };
}

/** A damaged row may have bytes in place of a text. */
function textOf(stored: unknown): string {
  return typeof stored === "string" ? stored : "";
}

async function inboxesOf(db: Db, user_id: string): Promise<Map<string, string>> {
  const inboxes = db.selectFrom("inboxes").select(["id", "label", "local_part", "domain"]);
  const rows = await inboxes.where("user_id", "=", user_id).execute();
  return new Map(rows.map((row) => [row.id, `${row.label} ${addressOf(row)}`]));
}
