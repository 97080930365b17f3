import type { App } from "../../../app.ts";
import { jsonTexts } from "../../../db/json.ts";
import type { UserRow } from "../../../db/schema.ts";
import { invalid } from "../../../errors.ts";
import { isIndexDamage } from "../../../db/storage-faults.ts";
import type { Hit } from "../../../db/text-search.ts";
import { decodeCursor, encodeCursor, type Page } from "../../../lib/pagination.ts";
import { historySince } from "../../billing/plans.ts";
import { isAnswered } from "../answered.ts";
import {
  firstPortion,
  fitting,
  type ListedMessage,
  type MessageFilters,
  type Range,
  rangeOf,
  readActivity,
  WORDS,
} from "../list.ts";
import { statesOf } from "../states.ts";
import { type Highlight, highlightsOf } from "./highlights.ts";
import { type Hits, openHits, type Places, scoresOf } from "./hits.ts";
import { placeOf } from "./places.ts";
import { asksForNothing, asksForTags, fromTerm, parseQuery, type SearchQuery } from "./query.ts";
import { findWaiting } from "./waiting.ts";

/** The most hits that one page looks at where its other filters leave many of them out. */
const MAX_HITS = 2_000;
/** How many hits are held against the other filters at once, at least. */
const AT_ONCE = 100;
/** How many of the newest hits are put in the order of their rank, and how long that may look for them. */
const RANKED = 500;
const RANKED_MS = 30;

type FoundMessage = ListedMessage & { highlights: Highlight[] };

export interface SearchFilters extends MessageFilters {
  /** See `parseQuery`. */
  q: string;
  /** By default the newest first. */
  sort?: "date" | "rank";
  /** Whose mails alone are found, and of these what was answered to them; by default everything is. */
  answered_to?: string;
}

type WantedPage = SearchFilters & Wanted;

/**
 * The user's messages that fit a search, newest first or best first. A page costs the same however many messages there are. An
 * index that turns out to be damaged is made anew; until that is done messages are found among those that wait for it.
 */
export async function searchMessages(
  app: App,
  user: UserRow,
  wanted: WantedPage,
): Promise<Page<FoundMessage>> {
  try {
    return await findPage(app, user, wanted);
  } catch (error) {
    if (!isIndexDamage(error)) throw error;
    await app.upkeep.renewIndex();
    return findPage(app, user, wanted);
  }
}

async function findPage(app: App, user: UserRow, wanted: WantedPage): Promise<Page<FoundMessage>> {
  const typed = parseQuery(wanted.q, user);
  const search = { app, user, query: amongOwn(typed, wanted), filters: wanted };
  const page = asksForNothing(typed)
    ? { ids: [], next_cursor: null }
    : await (wanted.sort === "rank" ? pageByRank : pageByDate)(search, wanted);
  const rows = await readActivity(app, user, page.ids);
  const order = new Map(page.ids.map((id, at) => [id, at]));
  rows.sort((one, other) => (order.get(one.message_id) ?? 0) - (order.get(other.message_id) ?? 0));
  const found = await highlightsIn({ app, user, query: typed }, page.ids);
  return {
    items: rows.map((row) => Object.assign(row, { highlights: found.get(row.message_id) ?? [] })),
    next_cursor: page.next_cursor,
  };
}

/**
 * A search as the index is asked. Among the messages of one sender it looks for their address as well, so that those of others are
 * neither looked through nor counted. Tags are marks of the owner, by which nobody else finds anything.
 */
function amongOwn(typed: SearchQuery, { answered_to }: SearchFilters): SearchQuery {
  if (answered_to === undefined) return typed;
  if (asksForTags(typed))
    throw invalid(
      "query.q",
      "not_yours",
      "tag: is for the owner of the inbox alone. Look for words instead.",
    );
  return { ...typed, terms: [fromTerm(answered_to), ...typed.terms] };
}

interface Search {
  app: App;
  user: UserRow;
  query: SearchQuery;
  filters: SearchFilters;
}

interface Wanted {
  limit: number;
  cursor?: string;
}

async function highlightsIn(
  { app, user, query }: Omit<Search, "filters">,
  ids: string[],
): Promise<Map<string, Highlight[]>> {
  if (ids.length === 0) return new Map();
  const known = ["id", "subject", "sender", "instruction", "result", "command", "tags"] as const;
  const rows = await app.db.selectFrom("messages").select(known).where("id", "in", ids).execute();
  return highlightsOf(app, user.id, { rows, query });
}

async function pageByDate(search: Search, { limit, cursor }: Wanted) {
  const range = rangeFor(search, cursor);
  const { found, reached } = await findNewest(search, { range, count: limit + 1 });
  const shown = found.slice(0, limit).map(({ id }) => id);
  const ids = await firstPortion(search.app.db, shown);
  const next = found.length > ids.length ? ids.at(-1) : reached;
  return { ids, next_cursor: next === undefined ? null : encodeCursor([next]) };
}

function rangeFor({ app, user, query, filters }: Search, cursor?: string): Range {
  const since = Math.max(filters.since ?? 0, query.since ?? 0, historySince(app, user));
  const last = Math.min(filters.until ?? Number.POSITIVE_INFINITY, query.until ?? Number.POSITIVE_INFINITY);
  const until = Number.isFinite(last) ? { until: last } : {};
  return rangeOf({ since, ...until, ...(cursor === undefined ? {} : { cursor }) }, app);
}

async function pageByRank(search: Search, { limit, cursor }: Wanted) {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, ["time", "id"]);
  const found = await findNewest(search, { range: rangeFor(search), count: RANKED, ms: RANKED_MS });
  const { app, user, query } = search;
  const hits = found.found.filter((one) => "slot" in one);
  const scores = await scoresOf(app, user.id, { query, hits });
  const ranked = found.found
    .map(({ id }) => ({ id, score: scores.get(id) ?? 0 }))
    .sort((one, other) => other.score - one.score || (one.id < other.id ? 1 : -1));
  const rest = after === undefined ? ranked : ranked.filter((one) => isBehind(one, after));
  const shown = rest.slice(0, limit).map(({ id }) => id);
  const ids = await firstPortion(app.db, shown);
  const last = rest[ids.length - 1];
  const more = last !== undefined && rest.length > ids.length;
  return { ids, next_cursor: more ? encodeCursor([last.score, last.id]) : null };
}

function isBehind({ id, score }: { id: string; score: number }, [last, last_id]: [number, string]): boolean {
  return score < last || (score === last && id < last_id);
}

/** What was found, newest first; `reached` is the id down to which everything was looked through, unless that is all. */
interface Newest {
  found: (Hit | { id: string })[];
  reached: string | undefined;
}

/** Finds the newest messages that fit: those in the index, and those that wait for it. */
async function findNewest(
  search: Search,
  { range, count, ms }: { range: Range; count: number; ms?: number },
): Promise<Newest> {
  const { app, user, query } = search;
  const waiting = await findWaiting(app, user.id, {
    query,
    range,
    count,
    others: (ids) => fittingIds(search, ids),
  });
  const places = placesOf({ ...range, from: waiting.reached ?? range.from });
  const hits = await openHits(app, user.id, { query, places, ...(ms === undefined ? {} : { ms }) });
  const indexed = await fittingHits(search, hits, count);
  const reached = [waiting.reached, indexed.reached]
    .filter((id) => id !== undefined)
    .sort()
    .at(-1);
  const found = [...indexed.found, ...waiting.found.map((id) => ({ id }))].filter(
    ({ id }) => reached === undefined || id >= reached,
  );
  found.sort((one, other) => (one.id < other.id ? 1 : -1));
  const once = found.filter(({ id }, at) => id !== found[at - 1]?.id);
  return { found: once, reached };
}

function placesOf({ from, below }: Range): Places {
  const isId = (text: string) => /^[0-9a-f]{8}-/.test(text);
  return {
    from: isId(from) ? placeOf(from) : Number.NEGATIVE_INFINITY,
    below: isId(below) ? placeOf(below) : Number.POSITIVE_INFINITY,
  };
}

/** Takes hits until `count` of them fit the other filters. */
async function fittingHits(
  search: Search,
  hits: Hits,
  count: number,
): Promise<{ found: Hit[]; reached?: string }> {
  const found: Hit[] = [];
  for (let left = MAX_HITS; left > 0;) {
    const some = await hits.next(Math.max(count - found.length, AT_ONCE));
    if (some.length === 0) break;
    left -= some.length;
    const ids = some.map(({ id }) => id);
    const fit = new Set(await fittingIds(search, ids));
    found.push(...some.filter(({ id }) => fit.has(id)));
    if (found.length >= count) return { found: found.slice(0, count) };
  }
  const reached = hits.reached();
  return reached === undefined ? { found } : { found, reached };
}

/** Those of the ids whose messages are the user's own, were not deleted, and fit all filters but the search. */
async function fittingIds({ app, user, filters }: Search, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const { status, source, inbox_id, conversation_id, schedule_id, answered_to } = filters;
  const inboxes = app.db.selectFrom("inboxes").select("id").where("user_id", "=", user.id);
  const wanted = jsonTexts(JSON.stringify(ids)).as("wanted");
  const all = app.db
    .selectFrom("messages")
    .select("id")
    .where("id", "in", (eb) => eb.selectFrom(wanted).select("wanted.value"))
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .$if(status !== undefined, (all) => all.where("state", "in", statesOf(status ?? "done")))
    .$if(source !== undefined, (all) => all.where("source", "=", source ?? "email"))
    .$if(conversation_id !== undefined, (all) => all.where("conversation_id", "=", conversation_id ?? ""))
    .$if(schedule_id !== undefined, (all) => all.where("schedule_id", "=", schedule_id ?? ""))
    .$if(answered_to !== undefined, (all) => all.where("sender", "=", answered_to ?? "").where(isAnswered))
    .$if(inbox_id !== undefined, (all) =>
      all.where("inbox_id", "in", inboxes.where("id", "=", inbox_id ?? "").where("deleted_at", "is", null)),
    );
  const fits = fitting(filters);
  const rows = fits ? (await all.select(WORDS).execute()).filter(fits) : await all.execute();
  return rows.map(({ id }) => id);
}
