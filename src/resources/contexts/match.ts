import type MiniSearch from "minisearch";
import type { App } from "../../app.ts";
import { remembered } from "../../db/prepared.ts";
import { BODY_BYTES } from "../../db/row-bytes.ts";
import type { ContextRow } from "../../db/schema.ts";
import { folded, tellingWords } from "../../lib/split-words.ts";

/** A context without its text, which may be long. */
export type ContextCard = Pick<
  ContextRow,
  "id" | "user_id" | "title" | "kind" | "slug" | "enabled" | "every_inbox" | "updated"
>;

const MAX_INDEXES = 100;
/**
 * The most characters in all indexes together: a character of a text without any repetition takes more than a hundred
 * bytes of memory.
 */
const MAX_KEPT_CHARS = 2_000_000;
const MAX_INDEX_CHARS = 500_000;
/** How much of each context is indexed: what it is about stands at its beginning. */
const MAX_INDEXED_CHARS = 10_000;
const MAX_QUERY_CHARS = 2_000;

/** All contexts of a user, in the order of their creation. */
export const cardsOf = remembered((db, key: { user_id: string }) =>
  db
    .selectFrom("contexts")
    .select(["id", "user_id", "title", "kind", "slug", "enabled", "every_inbox", "updated"])
    .where("user_id", "=", key.user_id)
    .orderBy("id"),
);

/** The text of a context, with the version that it is of. */
export interface ContextText {
  text: string;
  version: number;
}

/** The first `chars` characters of the texts of these contexts, by their ids. */
export async function textsOf(app: App, ids: string[], chars: number): Promise<Map<string, ContextText>> {
  if (ids.length === 0) return new Map();
  const rows = await app.db
    .selectFrom("contexts")
    .select((eb) => ["id", "version", eb.fn<string>("substr", ["body", eb.val(1), eb.val(chars)]).as("text")])
    .where("id", "in", ids)
    .execute();
  return new Map(rows.map(({ id, ...text }) => [id, text]));
}

/** The first of these contexts, at least as many as fit into `chars` characters. */
export async function fittingIds(app: App, ids: string[], chars: number): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await app.db
    .selectFrom("contexts")
    .select(["id", BODY_BYTES.as("bytes")])
    .where("id", "in", ids)
    .execute();
  const sizes = new Map(rows.map(({ id, bytes }) => [id, bytes]));
  // A character has three bytes at most.
  let room = 3 * chars;
  return ids.filter((id) => {
    const fits = room > 0;
    room -= sizes.get(id) ?? 0;
    return fits;
  });
}

/** The contexts of an inbox that best match `words`, best first; none without a telling word in common. */
export async function bestMatches(
  app: App,
  cards: ContextCard[],
  wanted: { inbox_id: string; words: string; count: number },
): Promise<ContextCard[]> {
  if (cards.length === 0) return [];
  const index = await indexOf(app, wanted.inbox_id, cards);
  const byId = new Map(cards.map((card) => [card.id, card]));
  const hits = index.search(wanted.words.slice(0, MAX_QUERY_CHARS));
  return hits.slice(0, wanted.count).flatMap(({ id }) => byId.get(id as string) ?? []);
}

interface Kept {
  index: Promise<MiniSearch>;
  of: string;
  made: number;
  /** Characters that are indexed; known once it is made. */
  chars: number;
}

/**
 * The index over the contexts of an inbox. It is made again only when one of them has changed, and only once, however
 * many runs wait for it.
 */
function indexOf(app: App, inbox_id: string, cards: ContextCard[]): Promise<MiniSearch> {
  const kept = indexes.get(app) ?? new Map<string, Kept>();
  indexes.set(app, kept);
  const of = cards.map(({ id, updated }) => `${id} ${updated}`).join();
  const known = kept.get(inbox_id);
  // An index that was made in the second of a change may have been made before the change.
  const fresh = known?.of === of && cards.every(({ updated }) => updated < known.made);
  const current = fresh ? known : keepIndex(app, cards, of);
  kept.delete(inbox_id);
  kept.set(inbox_id, current);
  // An index that could not be made is tried again by the next run; this run hears of the error itself.
  current.index.then(
    () => dropOldest(kept),
    () => kept.get(inbox_id) === current && kept.delete(inbox_id),
  );
  return current.index;
}

const indexes = new WeakMap<App, Map<string, Kept>>();

function dropOldest(kept: Map<string, Kept>): void {
  let chars = [...kept.values()].reduce((sum, one) => sum + one.chars, 0);
  for (const [inbox_id, one] of kept) {
    if (kept.size <= MAX_INDEXES && chars <= MAX_KEPT_CHARS) return;
    kept.delete(inbox_id);
    chars -= one.chars;
  }
}

function keepIndex(app: App, cards: ContextCard[], of: string): Kept {
  const kept: Kept = {
    of,
    made: app.now(),
    chars: 0,
    index: makeIndex(app, cards, (chars) => (kept.chars = chars)),
  };
  return kept;
}

async function makeIndex(
  app: App,
  cards: ContextCard[],
  count: (chars: number) => void,
): Promise<MiniSearch> {
  const texts = await textsOf(
    app,
    cards.map(({ id }) => id),
    Math.min(MAX_INDEXED_CHARS, Math.floor(MAX_INDEX_CHARS / cards.length)),
  );
  count([...texts.values()].reduce((sum, { text }) => sum + text.length, 0));
  // Loaded with the first choice among contexts: most servers have few, and make none.
  const { default: Library } = await import("minisearch");
  const index = new Library({
    fields: ["title", "text"],
    searchOptions: { boost: { title: 3 }, combineWith: "OR" },
    tokenize: tellingWords,
    processTerm: folded,
  });
  // Documents are added one at a time, so that two hundred long ones do not hold up everybody else.
  await index.addAllAsync(
    cards.map(({ id, title }) => ({ id, title, text: texts.get(id)?.text ?? "" })),
    { chunkSize: 1 },
  );
  return index;
}
