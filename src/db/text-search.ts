import { sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { prepared } from "./prepared.ts";

const INDEX = "message_texts";

/** What is looked for in the index of words, and between which places: `from` is included, `below` is not. */
export interface Looked {
  /** In the grammar of FTS5. */
  expression: string;
  from: number;
  below: number;
}

/** A message that was found, and where its texts are. */
export interface Hit {
  id: string;
  place: number;
  slot: number;
}

/** Whether there is an index of words: not where one was damaged, and no other could be made yet. */
export async function hasTextIndex(db: Db): Promise<boolean> {
  const known = db.withTables<{ sqlite_master: { name: string } }>().selectFrom("sqlite_master");
  return (await known.select("name").where("name", "=", INDEX).executeTakeFirst()) !== undefined;
}

/** Whether pages of a damaged index of words still lie in the file; see `setAside`. */
export async function hasDamagedPages(db: Db): Promise<boolean> {
  const known = db
    .withTables<{ sqlite_master: { name: string; type: string; tbl_name: string } }>()
    .selectFrom("sqlite_master");
  const indexes = known.select("name").where("type", "=", "index").where("tbl_name", "=", "old_text_index");
  return (await indexes.executeTakeFirst()) !== undefined;
}

/** The id below which messages are still to be put among those that wait for the index; none for most of the time. */
export const unqueuedMessages = prepared((db, _none: object) =>
  db.selectFrom("unqueued_messages").select("below"),
);

/** Finds the newest hits, `count` at most. */
export function hitsIn(db: Db, { count, ...looked }: Looked & { count: number }): Promise<Hit[]> {
  return newestHits(db, { ...whole(looked), count });
}

/** Says of all hits how well they fit: the more, the better. */
export function scoresIn(db: Db, looked: Looked): Promise<{ id: string; score: number }[]> {
  return scores(db, whole(looked));
}

/**
 * Weights as in `TEXT_FIELDS`: what is in a subject, a tag or an instruction says more of a message than what is in its
 * material. A word that stands nearly everywhere has a score near 0, so it is made a large whole number.
 */
const SCORE = sql<number>`cast(-1e12 * bm25(message_texts, 0, 8, 4, 4, 4, 4, 2, 1, 1) as integer)`;

const newestHits = prepared((db, looked: Looked & { count: number }) =>
  matching(db, looked)
    .select(["indexed_messages.message_id as id", "indexed_messages.place", "indexed_messages.slot"])
    .orderBy("message_texts.rowid", "desc")
    .limit(looked.count),
);

const scores = prepared((db, looked: Looked) =>
  matching(db, looked).select(["indexed_messages.message_id as id", SCORE.as("score")]),
);

function matching(db: Db, { expression, from, below }: Looked) {
  return db
    .selectFrom("message_texts")
    .innerJoin("indexed_messages", "indexed_messages.place", "message_texts.rowid")
    .where(sql<boolean>`message_texts match ${expression}`)
    .where("message_texts.rowid", ">=", sql<number>`cast(${from} as integer)`)
    .where("message_texts.rowid", "<", sql<number>`cast(${below} as integer)`);
}

/** The index knows only whole numbers as bounds, also where there is none. */
function whole({ expression, from, below }: Looked): Looked {
  const [least, most] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  return { expression, from: Math.max(least, from), below: Math.min(most, below) };
}
