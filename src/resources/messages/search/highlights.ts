import type { App } from "../../../app.ts";
import type { Db } from "../../../db/database.ts";
import type { MessageRow } from "../../../db/schema.ts";
import { hasTextIndex } from "../../../db/text-search.ts";
import { plainText } from "../../../lib/split-words.ts";
import { withoutMarks } from "../../conversations/snippet.ts";
import { type Fields, type Span, spansOf } from "./fits.ts";
import type { SearchQuery } from "./query.ts";
import { knownFields } from "./waiting.ts";
import { MB } from "../../../lib/sizes.ts";

/** A part of a text in which something was found. */
export interface Highlight {
  field: (typeof SHOWN)[number];
  text: string;
  /** From where to where, in the units of UTF-16 that JavaScript counts in. */
  spans: Span[];
}

/** The fields in which a place is shown, those first that say most. */
const SHOWN = ["subject", "instruction", "result", "material", "files", "sender", "recipient"] as const;
const MAX_HIGHLIGHTS = 3;
const MAX_SPANS = 8;
/** How much stands before the first place, and how much is shown in all. */
const BEFORE_CHARS = 60;
const SHOWN_CHARS = 240;
/** How much text of one field is looked through, and of all messages of a page. */
const MAX_FIELD_CHARS = 16_384;
const MAX_PAGE_CHARS = MB;

type Known = Pick<MessageRow, "id" | "subject" | "sender" | "instruction" | "result" | "command" | "tags">;

/** Where a search has found something in each of these messages, by their ids. */
export async function highlightsOf(
  app: App,
  user_id: string,
  { rows, query }: { rows: Known[]; query: SearchQuery },
): Promise<Map<string, Highlight[]>> {
  const indexed = await indexedTexts(
    app.db,
    rows.map(({ id }) => id),
  );
  const others = new Map(indexed.map(({ message_id, ...texts }) => [message_id, texts]));
  let room = MAX_PAGE_CHARS;
  const highlightsIn = (fields: Fields): Highlight[] => {
    const found: Highlight[] = [];
    for (const field of SHOWN) {
      if (found.length === MAX_HIGHLIGHTS || room <= 0) break;
      const text = plainText((fields[field] ?? "").slice(0, MAX_FIELD_CHARS));
      room -= text.length;
      const highlight = foundIn(query, field, text);
      if (highlight) found.push(highlight);
    }
    return found;
  };
  const all = new Map<string, Highlight[]>();
  for (const row of rows) {
    const found = app.reads({ who: user_id }, async () =>
      highlightsIn({ ...knownFields(row), ...others.get(row.id) }),
    );
    all.set(row.id, await found);
    // A page of long texts would hold up everybody else.
    await Bun.sleep(0);
  }
  return all;
}

/** What the model wrote is shown without the marks of its Markdown, unless what was found stands in one. */
function foundIn(query: SearchQuery, field: Highlight["field"], text: string): Highlight | undefined {
  for (const shown of field === "result" ? [withoutMarks(text), text] : [text]) {
    const spans = spansOf(query, field, shown, MAX_SPANS);
    if (spans.length > 0) return around(field, shown, spans);
  }
  return undefined;
}

/** What the index has of messages beside what their rows say. */
async function indexedTexts(db: Db, ids: string[]) {
  if (!(await hasTextIndex(db))) return [];
  return db
    .selectFrom("indexed_messages")
    .select(["message_id", "recipient", "material", "files"])
    .where("message_id", "in", ids)
    .execute();
}

/** The part of a text around the first places. */
function around(field: Highlight["field"], text: string, spans: Span[]): Highlight {
  const first = spans[0]?.[0] ?? 0;
  const from = wordBefore(text, Math.max(0, first - BEFORE_CHARS), first);
  const to = wordAfter(text, from + SHOWN_CHARS);
  return {
    field,
    text: text.slice(from, to).replaceAll(/\s/gu, " ").toWellFormed(),
    spans: spans.filter(([, end]) => end <= to).map(([begin, end]) => [begin - from, end - from]),
  };
}

/** The beginning of the first whole word from `at` on, `most` at the latest. */
function wordBefore(text: string, at: number, most: number): number {
  if (at === 0) return 0;
  const blank = text.slice(at, most).search(/\s/u);
  return blank === -1 ? at : at + blank + 1;
}

function wordAfter(text: string, at: number): number {
  if (at >= text.length) return text.length;
  const blank = text.slice(0, at).search(/\s\S*$/u);
  return blank === -1 ? at : blank;
}
