import { tagsOf } from "./tags-of.ts";
import type { SelectQueryBuilder } from "kysely";
import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { MESSAGE_BYTES } from "../../db/row-bytes.ts";
import type { MessageRow, Schema, UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { waitingAmong } from "../../jobs/paused.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { decodeCursor, encodeCursor, type Page } from "../../lib/pagination.ts";
import { portionsOf } from "../../lib/portions.ts";
import { attachmentsOf } from "./messages.ts";
import { lookAtTries, type Tries } from "./may-retry.ts";
import { metadataOf, pairIn } from "./metadata.ts";
import { type ActivityStatus, statesOf } from "./states.ts";
import { type ActivityView, viewActivity } from "./view.ts";
import { MB } from "../../lib/sizes.ts";

/** The most messages that one page looks at where no index answers all of its filters. */
const MAX_LOOKED_AT = 2_000;
/** Messages that are looked up at once where their words are read. */
const READ_AT_ONCE = 100;
/** The most bytes of words that one page reads, give or take one portion. */
const MAX_READ_BYTES = 32 * MB;
/** Sorts after every id. */
const AFTER_ALL = "g";

export type ListedMessage = ActivityView & Tries;

/** The filters of a page; a message has to fit all that are given. */
export interface MessageFilters {
  status?: ActivityStatus;
  source?: MessageRow["source"];
  inbox_id?: string;
  conversation_id?: string;
  /** One of the user's own. */
  schedule_id?: string;
  /** In unix seconds, both included. */
  since?: number;
  until?: number;
  /** A `#tag` of its instruction, or the `+tag` of its recipient. */
  tag?: string;
  /** A pair of its metadata: `KEY:VALUE`. */
  metadata?: string;
}

/**
 * The user's messages, newest first. Each page costs the same, however many messages there are and however long: it
 * reads one range of one index. Of the rows it reads the first portion of those that it could show or, for filters
 * that no index answers, a bounded number.
 */
export async function listMessages(
  app: App,
  user: UserRow,
  wanted: MessageFilters & { limit: number; cursor?: string },
): Promise<Page<ListedMessage>> {
  const since = Math.max(wanted.since ?? 0, historySince(app, user));
  const range = rangeOf({ ...wanted, since }, app);
  const search = searchOf(app.db, user, wanted);
  const edge = search.exact ? undefined : await edgeOf(search, range);
  const { found, end } = await findIds(app, user, search, {
    ...range,
    from: edge ?? range.from,
    count: wanted.limit + 1,
  });
  const ids = await firstPortion(app.db, found.slice(0, wanted.limit));
  const next = found.length > ids.length ? ids.at(-1) : (end ?? edge);
  return { items: await readActivity(app, user, ids), next_cursor: next ? encodeCursor([next]) : null };
}

type Ids = SelectQueryBuilder<Schema, "messages", { id: string }>;

/** Ids from `from`, which is included, to `below`, which is not. */
export interface Range {
  from: string;
  below: string;
}

/** How a page is looked for. The ids of all queries together are its candidates. */
interface Search {
  /** Finds all rows of the index's range. */
  indexed: (range: Range) => Ids[];
  /** Finds those of them that fit all filters that SQL can answer. */
  matching: (range: Range) => Ids[];
  /** Whether the words of a message fit; undefined where no filter is about words. */
  fits: ((words: Words) => boolean) | undefined;
  /** Whether the index alone answers all filters. */
  exact: boolean;
}

/** The ids of the messages that were accepted from one moment to another, behind a cursor. */
export function rangeOf(
  { cursor, since, until }: Pick<MessageFilters, "since" | "until"> & { cursor?: string },
  { now, orderNow }: Pick<App, "now" | "orderNow">,
): Range {
  // Messages that were made after the clock was set back have ids of a later moment.
  const last = until !== undefined && until >= now() ? Math.max(until, orderNow()) : until;
  const below = last === undefined ? AFTER_ALL : firstIdAt(last + 1);
  const after = cursor === undefined ? AFTER_ALL : decodeCursor(cursor, ["id"])[0];
  return {
    from: since === undefined || since === 0 ? "" : firstIdAt(since),
    below: after < below ? after : below,
  };
}

/** Chooses the index. That must not be left to SQLite, because what a page looks at is bounded along the index. */
function searchOf(db: Db, user: UserRow, filters: MessageFilters): Search {
  const { status, source, inbox_id, conversation_id, schedule_id } = filters;
  const states = status === undefined ? undefined : statesOf(status);
  const of_all = inbox_id === undefined && conversation_id === undefined && schedule_id === undefined;
  // The index of states leaves out the state in which nearly every message ends.
  const keyed = of_all && status !== "done" ? states : undefined;
  const rest = keyed ? undefined : states;
  const indexed = ({ from, below }: Range): Ids[] => {
    const ids = db
      .selectFrom("messages")
      .select("messages.id")
      .where("messages.id", "<", below)
      .where("messages.id", ">=", from);
    if (schedule_id !== undefined)
      return [ids.where("schedule_id", "=", schedule_id).where("user_id", "=", user.id)];
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

export const WORDS = ["command", "tags", "metadata"] as const;
type Words = Pick<MessageRow, (typeof WORDS)[number]>;

/** Whether tags and metadata fit is not asked in SQL, where letters beyond ASCII have no upper and lower case. */
export function fitting({ tag, metadata }: Pick<MessageFilters, "tag" | "metadata">): Search["fits"] {
  if (tag === undefined && metadata === undefined) return undefined;
  const pair = metadata === undefined ? undefined : pairIn(metadata);
  const label = tag?.replace(/^[#+]/, "").toLowerCase();
  return (words) =>
    (label === undefined || tagsOf(words).some((one) => one.toLowerCase() === label)) &&
    (pair === undefined || metadataOf(words)[pair.key] === pair.value);
}

/** Narrows a list to one conversation; one of another user has nothing, and nothing is looked at. */
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
    // All messages of a conversation are in its one inbox.
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

/** The last id that a page looks at; undefined when it looks at the whole range. */
async function edgeOf(search: Search, range: Range): Promise<string | undefined> {
  const [last] = await newest(search.indexed(range))
    .limit(1)
    .offset(MAX_LOOKED_AT - 1)
    .execute();
  return last?.id;
}

/**
 * The newest ids of the range that fit, `count` at most; `end` is the last one that was looked at if the range was
 * not read to its end.
 */
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

/** The first of these messages in their order, as many as may be read at once. */
export async function firstPortion(db: Db, ids: string[]): Promise<string[]> {
  const rows = new Map((await sizedRows(db, ids)).map((row) => [row.id, row]));
  const [first = []] = portionsOf(ids.flatMap((id) => rows.get(id) ?? []));
  return idsOf(first);
}

/** Messages of these ids, newest first, in portions that may be read at once. */
export async function messagePortions(db: Db, ids: string[]): Promise<string[][]> {
  return (await sizedPortions(db, ids)).map(idsOf);
}

async function sizedPortions(db: Db, ids: string[]) {
  return portionsOf(await sizedRows(db, ids));
}

async function sizedRows(db: Db, ids: string[]) {
  if (ids.length === 0) return [];
  return db
    .selectFrom("messages")
    .select(["id", MESSAGE_BYTES.as("bytes")])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
}

function idsOf(rows: { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

function newest([first, ...others]: Ids[]): Ids {
  if (first === undefined) throw new Error("A search has at least one query");
  return others.reduce((all, one) => all.unionAll(one), first).orderBy("id", "desc");
}

/** What is shown of a message whose work waits because its inbox is paused. */
export const WAITS = { reason: "inbox_paused" as const };

/** The rows of the activity log for those of the ids that are the user's own, newest first. */
export async function readActivity(app: App, user: UserRow, ids: string[]): Promise<ListedMessage[]> {
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
  const triesOf = await lookAtTries(app, rows);
  const paused = await waitingAmong(app.db, rows);
  return rows.map((row) =>
    Object.assign(viewActivity(row, files.get(row.id) ?? []), triesOf(row), paused.has(row.id) ? WAITS : {}),
  );
}
