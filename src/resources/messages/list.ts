import { tagsOf } from "./tags.ts";
import type { SelectQueryBuilder } from "kysely";
import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { MESSAGE_BYTES } from "../../db/row-bytes.ts";
import type { MessageRow, Schema, UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { decodeCursor, encodeCursor, type Page } from "../../lib/pagination.ts";
import { portionsOf } from "../../lib/portions.ts";
import { attachmentsOf } from "./messages.ts";
import { metadataOf, pairIn } from "./metadata.ts";
import { type ActivityStatus, statesOf } from "./states.ts";
import { type ActivityView, viewActivity } from "./view.ts";

/** Messages that one page looks at, at most, where no index answers all of its filters. */
const MAX_LOOKED_AT = 2_000;
/** Messages whose words are read that are looked up at once. */
const READ_AT_ONCE = 100;
/** What one page reads of words, at most, and one portion more. */
const MAX_READ_BYTES = 32 * 1_048_576;
/** Sorts after every id. */
const AFTER_ALL = "g";

/** What the messages of a page have in common; everything that is given must hold. */
export interface MessageFilters {
  status?: ActivityStatus;
  source?: MessageRow["source"];
  inbox_id?: string;
  conversation_id?: string;
  /** Unix seconds, both included. */
  since?: number;
  until?: number;
  /** Stands in its subject, sender, instruction or result, in upper or lower case. */
  q?: string;
  /** A `#tag` of its instruction, or the `+tag` of its recipient. */
  tag?: string;
  /** A pair of its metadata: `KEY:VALUE`. */
  metadata?: string;
}

/**
 * The user's messages, newest first. Each page costs the same however many there are, and however long: it reads one
 * range of one index, and of the rows only those that it shows, the first portion of those that it could, or, for
 * filters that the index leaves open, a bounded number.
 */
export async function listMessages(
  app: App,
  user: UserRow,
  wanted: MessageFilters & { limit: number; cursor?: string },
): Promise<Page<ActivityView>> {
  const since = Math.max(wanted.since ?? 0, historySince(app, user));
  const range = rangeOf({ ...wanted, since }, app);
  const search = searchOf(app.db, user, wanted);
  const edge = search.exact ? undefined : await edgeOf(search, range);
  const { found, end } = await findIds(app, user, search, {
    ...range,
    from: edge ?? range.from,
    count: wanted.limit + 1,
  });
  const [ids = []] = await messagePortions(app.db, found.slice(0, wanted.limit));
  const next = found.length > ids.length ? ids.at(-1) : (end ?? edge);
  return { items: await readActivity(app, user, ids), next_cursor: next ? encodeCursor([next]) : null };
}

type Ids = SelectQueryBuilder<Schema, "messages", { id: string }>;

/** Ids from `from`, which is included, to `below`, which is not. */
interface Range {
  from: string;
  below: string;
}

/** Where a page is looked for: queries of which the ids, taken together, are its candidates. */
interface Search {
  /** All that the index alone leads to. */
  indexed: (range: Range) => Ids[];
  /** Those of them that all filters let through. */
  matching: (range: Range) => Ids[];
  /** What the words of a message have to fit; undefined where they do not matter. */
  fits: ((words: Words) => boolean) | undefined;
  /** Whether the index says it all. */
  exact: boolean;
}

function rangeOf(
  { cursor, since, until }: MessageFilters & { cursor?: string },
  { now, orderNow }: Pick<App, "now" | "orderNow">,
): Range {
  // The ids of what is made after the clock was set back are of a later moment.
  const last = until !== undefined && until >= now() ? Math.max(until, orderNow()) : until;
  const below = last === undefined ? AFTER_ALL : firstIdAt(last + 1);
  const after = cursor === undefined ? AFTER_ALL : decodeCursor(cursor, ["id"])[0];
  return {
    from: since === undefined || since === 0 ? "" : firstIdAt(since),
    below: after < below ? after : below,
  };
}

/** Takes one index. Which one must not be left open to SQLite: what a page looks at is bounded along that index. */
function searchOf(db: Db, user: UserRow, filters: MessageFilters): Search {
  const { status, source, inbox_id, conversation_id } = filters;
  const states = status === undefined ? undefined : statesOf(status);
  const of_all = inbox_id === undefined && conversation_id === undefined;
  // There is an index of the states, but not of the one that nearly every message ends in.
  const keyed = of_all && status !== "done" ? states : undefined;
  const rest = keyed ? undefined : states;
  const indexed = ({ from, below }: Range): Ids[] => {
    const ids = db
      .selectFrom("messages")
      .select("messages.id")
      .where("messages.id", "<", below)
      .where("messages.id", ">=", from);
    if (conversation_id !== undefined) return [inConversation(ids, user, { conversation_id, inbox_id })];
    if (inbox_id !== undefined) return [inInbox(ids, user, inbox_id)];
    const own = ids.where("user_id", "=", user.id);
    return keyed ? keyed.map((state) => own.where("state", "=", state).where(NOT_DONE)) : [own];
  };
  const matching = (range: Range): Ids[] =>
    indexed(range).map((ids) => {
      const shown = ids.where("deleted_at", "is", null);
      const some = source === undefined ? shown : shown.where("source", "=", source);
      return rest === undefined ? some : some.where("state", "in", rest);
    });
  const fits = fitting(filters);
  return {
    indexed,
    matching,
    fits,
    exact: source === undefined && rest === undefined && fits === undefined,
  };
}

const WORDS = ["subject", "sender", "instruction", "result", "command", "tags", "metadata"] as const;
type Words = Pick<MessageRow, (typeof WORDS)[number]>;

/** Not in SQL, where letters beyond ASCII have no upper and lower case. */
function fitting({ q, tag, metadata }: MessageFilters): Search["fits"] {
  if (q === undefined && tag === undefined && metadata === undefined) return undefined;
  const pair = metadata === undefined ? undefined : pairIn(metadata);
  const wanted = q?.toLowerCase();
  const label = tag?.replace(/^[#+]/, "").toLowerCase();
  return ({ subject, sender, instruction, result, ...words }) =>
    (wanted === undefined ||
      [subject, sender, instruction, result].some((text) => text?.toLowerCase().includes(wanted))) &&
    (label === undefined || tagsOf(words).some((one) => one.toLowerCase() === label)) &&
    (pair === undefined || metadataOf(words)[pair.key] === pair.value);
}

/** Narrows a list to one conversation. One that is not the user's has nothing, and nothing is looked at. */
function inConversation(
  ids: Ids,
  user: UserRow,
  wanted: { conversation_id: string; inbox_id: string | undefined },
): Ids {
  return ids.where("conversation_id", "=", (eb) => {
    const own = eb
      .selectFrom("conversations")
      .select("conversations.id")
      .where("conversations.id", "=", wanted.conversation_id)
      .where("conversations.user_id", "=", user.id);
    // A conversation is in one inbox, with all of its messages.
    return wanted.inbox_id === undefined ? own : own.where("conversations.inbox_id", "=", wanted.inbox_id);
  });
}

function inInbox(ids: Ids, user: UserRow, inbox_id: string): Ids {
  return ids.where("inbox_id", "=", (eb) =>
    eb
      .selectFrom("inboxes")
      .select("inboxes.id")
      .where("inboxes.id", "=", inbox_id)
      .where("inboxes.user_id", "=", user.id)
      .where("inboxes.deleted_at", "is", null),
  );
}

/** The last id that this page looks at; undefined when it sees the range to its end. */
async function edgeOf(search: Search, range: Range): Promise<string | undefined> {
  const [last] = await newest(search.indexed(range))
    .limit(1)
    .offset(MAX_LOOKED_AT - 1)
    .execute();
  return last?.id;
}

/** The newest ids of the range that fit, `count` at most; `end` is the last one looked at, where more was not read. */
async function findIds(
  app: App,
  user: UserRow,
  search: Search,
  { count, ...range }: Range & { count: number },
): Promise<{ found: string[]; end?: string }> {
  const { fits } = search;
  const at_once = fits ? READ_AT_ONCE : count;
  const found: string[] = [];
  let { below } = range;
  let room = MAX_READ_BYTES;
  for (;;) {
    const rows = await newest(search.matching({ ...range, below }))
      .limit(at_once)
      .execute();
    const ids = rows.map(({ id }) => id);
    if (!fits) return { found: ids };
    for (const portion of await sizedPortions(app.db, ids)) {
      found.push(...(await app.reads({ who: user.id }, () => fittingOf(app.db, idsOf(portion), fits))));
      if (found.length >= count) return { found: found.slice(0, count) };
      below = portion.at(-1)?.id ?? "";
      room -= portion.reduce((sum, { bytes }) => sum + bytes, 0);
      if (room <= 0) return { found, end: below };
    }
    if (ids.length < at_once) return { found };
  }
}

async function fittingOf(db: Db, ids: string[], fits: (words: Words) => boolean): Promise<string[]> {
  const rows = await db
    .selectFrom("messages")
    .select(["id", ...WORDS])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
  const fitting_ids = idsOf(rows.filter(fits));
  // Others have their turn before the next portion.
  await Bun.sleep(0);
  return fitting_ids;
}

/** Messages of these ids, newest first, in portions that may be read at once. */
export async function messagePortions(db: Db, ids: string[]): Promise<string[][]> {
  return (await sizedPortions(db, ids)).map(idsOf);
}

async function sizedPortions(db: Db, ids: string[]) {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("messages")
    .select(["id", MESSAGE_BYTES.as("bytes")])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
  return portionsOf(rows);
}

function idsOf(rows: { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

function newest([first, ...others]: Ids[]): Ids {
  if (first === undefined) throw new Error("A search has at least one query");
  return others.reduce((all, one) => all.unionAll(one), first).orderBy("id", "desc");
}

/** What the activity log shows of those of the ids that are the user's own, newest first. */
export async function readActivity(app: App, user: UserRow, ids: string[]): Promise<ActivityView[]> {
  if (ids.length === 0) return [];
  const rows = await app.db
    .selectFrom("messages")
    .selectAll()
    .where("id", "in", ids)
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id", "desc")
    .execute();
  const files = await attachmentsOf(app.db, ids);
  return rows.map((row) => viewActivity(row, files.get(row.id) ?? []));
}
