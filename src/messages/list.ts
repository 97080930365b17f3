import type { SelectQueryBuilder } from "kysely";
import type { App } from "../app.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow, Schema, UserRow } from "../db/schema.ts";
import { NOT_DONE } from "../db/unfinished.ts";
import { decodeCursor, encodeCursor, type Page } from "../lib/pagination.ts";
import { attachmentsOf } from "./messages.ts";
import { type ActivityStatus, type ActivityView, statesOf, viewActivity } from "./view.ts";

/** Messages that one page looks at, at most, where no index answers all of its filters. */
const MAX_LOOKED_AT = 2_000;
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
}

/**
 * The user's messages, newest first. Each page costs the same however many there are: it reads one range of one
 * index, and of the rows only those that it shows or, for filters that the index leaves open, a bounded number.
 */
export async function listMessages(
  app: App,
  user: UserRow,
  wanted: MessageFilters & { limit: number; cursor?: string },
): Promise<Page<ActivityView>> {
  const since = Math.max(wanted.since ?? 0, historySince(app, user));
  const range = rangeOf({ ...wanted, since });
  const search = searchOf(app.db, user, wanted);
  const edge = search.exact ? undefined : await edgeOf(search, range);
  const found = await newest(search.matching({ ...range, from: edge ?? range.from }))
    .limit(wanted.limit + 1)
    .execute();
  const ids = found.slice(0, wanted.limit).map(({ id }) => id);
  const next = found.length > wanted.limit ? ids.at(-1) : edge;
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
  /** Whether the index says it all. */
  exact: boolean;
}

function rangeOf({ cursor, since, until }: MessageFilters & { cursor?: string }): Range {
  const below = until === undefined ? AFTER_ALL : firstIdAt(until + 1);
  const after = cursor === undefined ? AFTER_ALL : decodeCursor(cursor, ["id"])[0];
  return {
    from: since === undefined || since === 0 ? "" : firstIdAt(since),
    below: after < below ? after : below,
  };
}

/** No message that was accepted in this second or later has a lesser id: the first 48 bits are its milliseconds (RFC 9562 §5.7). */
function firstIdAt(second: number): string {
  const hex = (second * 1_000).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
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
      const some = source === undefined ? ids : ids.where("source", "=", source);
      return rest === undefined ? some : some.where("state", "in", rest);
    });
  return { indexed, matching, exact: source === undefined && rest === undefined };
}

/** Of a conversation that is not the user's there is nothing, and nothing is looked at. */
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
      .where("inboxes.user_id", "=", user.id),
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

function newest([first, ...others]: Ids[]): Ids {
  if (first === undefined) throw new Error("A search has at least one query");
  return others.reduce((all, one) => all.unionAll(one), first).orderBy("id", "desc");
}

async function readActivity(app: App, user: UserRow, ids: string[]): Promise<ActivityView[]> {
  if (ids.length === 0) return [];
  const rows = await app.db
    .selectFrom("messages")
    .selectAll()
    .where("id", "in", ids)
    .where("user_id", "=", user.id)
    .orderBy("id", "desc")
    .execute();
  const files = await attachmentsOf(app.db, ids);
  return rows.map((row) => viewActivity(row, files.get(row.id) ?? []));
}
