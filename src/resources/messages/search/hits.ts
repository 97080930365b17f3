import type { App } from "../../../app.ts";
import { prepared } from "../../../db/prepared.ts";
import { hasTextIndex, type Hit, hitsIn, scoresIn } from "../../../db/text-search.ts";
import { markOf } from "../../../lib/split-words.ts";
import { expressionOf } from "./expression.ts";
import { idAt } from "./places.ts";
import type { SearchQuery } from "./query.ts";

/** Hits that one step reads of one slot. */
const AT_ONCE = 100;
/** How long a page looks for hits, without what it waits for others. A step that has begun is finished. */
const PAGE_MS = 30;
/** How long the slots that are read one behind the other may take before others have their turn. */
const TURN_MS = 4;
const NO_PLACE = Number.NEGATIVE_INFINITY;

/** The places that are looked through: from `from`, which is included, to `below`, which is not. */
export interface Places {
  from: number;
  below: number;
}

/** The hits of a search in the index, the newest first. */
export interface Hits {
  /** Returns the next hits, `count` at most; fewer only if there are no more, or the time is up. */
  next: (count: number) => Promise<Hit[]>;
  /** The id down to which everything was looked through; undefined at the end. */
  reached: () => string | undefined;
}

/** A slot with those of its hits that were read and not given out. */
interface Reading {
  slot: number;
  hits: Hit[];
  /** Its hits below this place were not read yet. */
  below: number;
}

/** Begins to look for a search in the index; each slot is read only when its messages are next. */
export async function openHits(
  app: App,
  user_id: string,
  { query, places, ms = PAGE_MS }: { query: SearchQuery; places: Places; ms?: number },
): Promise<Hits> {
  const slots = (await hasTextIndex(app.db)) ? await slotsOf(app.db, { user_id, ...places }) : [];
  const readings = slots.map(({ slot, last }): Reading => ({
    slot,
    hits: [],
    below: Math.min(last + 1, places.below),
  }));
  let left_ms = ms;
  let turn_ms = TURN_MS;
  const read = async (reading: Reading): Promise<void> => {
    const { slot, below } = reading;
    const looked = {
      expression: expressionOf(query, markOf(slot)),
      from: places.from,
      below,
      count: AT_ONCE,
    };
    const { rows, took_ms } = await inTurn(app, user_id, () => hitsIn(app.db, looked));
    reading.hits = rows;
    reading.below = rows.length < AT_ONCE ? NO_PLACE : (rows.at(-1)?.place ?? NO_PLACE);
    left_ms -= took_ms;
    turn_ms -= took_ms;
    if (turn_ms > 0) return;
    await Bun.sleep(0);
    turn_ms = TURN_MS;
  };
  return {
    async next(count) {
      const taken: Hit[] = [];
      while (taken.length < count) {
        const first = newestOf(readings);
        if (first === undefined) break;
        const hit = first.hits.shift();
        if (hit) taken.push(hit);
        else if (left_ms <= 0) break;
        else await read(first);
      }
      return taken;
    },
    reached() {
      const first = newestOf(readings);
      return first && idAt(first.hits[0] ? first.hits[0].place + 1 : first.below);
    },
  };
}

/** The slot that the next hit is in, or that has to be read to know. */
function newestOf(readings: Reading[]): Reading | undefined {
  let newest: Reading | undefined;
  for (const one of readings) if (topOf(one) > (newest ? topOf(newest) : NO_PLACE)) newest = one;
  return newest;
}

function topOf({ hits, below }: Reading): number {
  return hits[0]?.place ?? below - 1;
}

const slotsOf = prepared((db, key: Places & { user_id: string }) =>
  db
    .selectFrom("text_slots")
    .select(["slot", "last"])
    .where("user_id", "=", key.user_id)
    .where("last", ">=", key.from)
    .where("first", "<", key.below)
    .orderBy("last", "desc"),
);

/** How well each of these hits fits: the more, the better. */
export async function scoresOf(
  app: App,
  user_id: string,
  { query, hits }: { query: SearchQuery; hits: Hit[] },
): Promise<Map<string, number>> {
  const scores = new Map<string, number>();
  for (const [slot, [newest, ...others]] of Map.groupBy(hits, (hit) => hit.slot)) {
    if (!newest) continue;
    const expression = expressionOf(inShort(query), markOf(slot));
    const places = { from: (others.at(-1) ?? newest).place, below: newest.place + 1 };
    const { rows } = await inTurn(app, user_id, () => scoresIn(app.db, { expression, ...places }));
    for (const { id, score } of rows) scores.set(id, score);
  }
  return scores;
}

/** How many words of a phrase count for its rank. */
const RANKING_WORDS = 3;

/**
 * A search that finds at least the same. How well a phrase fits depends on how often it stands in all messages, which takes
 * the longer the more words it has.
 */
function inShort(query: SearchQuery): SearchQuery {
  const terms = query.terms.map((term) =>
    term.words.length > RANKING_WORDS
      ? { ...term, words: term.words.slice(0, RANKING_WORDS), prefix: false }
      : term,
  );
  return { ...query, terms, without: [] };
}

/** Reads the index, one step of one account at a time, and everybody's in turn. */
function inTurn<Row>(
  app: App,
  who: string,
  find: () => Promise<Row[]>,
): Promise<{ rows: Row[]; took_ms: number }> {
  return app.reads({ who }, async () => {
    const began = performance.now();
    return { rows: await find(), took_ms: performance.now() - began };
  });
}
