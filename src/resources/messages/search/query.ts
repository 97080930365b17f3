import { normalForm } from "../../../lib/normal-form.ts";
import { invalid } from "../../../errors.ts";
import { knownZone } from "../../../lib/written-moment.ts";
import { type Word, wordsIn } from "../../../lib/split-words.ts";

/** What a term may be looked for in; null: in all that people read. */
type Place = "from" | "to" | "subject" | "tag" | null;

export interface Term {
  in: Place;
  /** Words that follow each other, at least one. */
  words: string[];
  /** Whether the last word may go on. */
  prefix: boolean;
}

/** A search as it was understood. All of it has to hold. */
export interface SearchQuery {
  terms: Term[];
  without: Term[];
  has_file: boolean;
  /** In unix seconds; both included. */
  since?: number;
  until?: number;
}

/** How many words are looked for, those of phrases too: each goes through all places of the word in the index. */
const MAX_WORDS = 32;
/** From how many letters on a word also finds those that begin with it; with an asterisk, from how many. */
const PREFIX_CHARS = 3;
const STARRED_CHARS = 2;

const PLACES: Record<string, Exclude<Place, null>> = {
  from: "from",
  to: "to",
  subject: "subject",
  tag: "tag",
};
const FILTERS = new Set(["has", "before", "after"]);
/** Fields of other searches that are none here, by what comes nearest to them. */
const ELSEWHERE: Record<string, string | undefined> = {
  sender: "from:",
  recipient: "to:",
  title: "subject:",
  label: "tag:",
  tags: "tag:",
  attachment: "has:file",
  filename: "has:file",
  newer: "after:",
  since: "after:",
  older: "before:",
  until: "before:",
  ...Object.fromEntries(
    ["in", "is", "cc", "bcc", "body", "inbox", "status"].map((name) => [name, undefined]),
  ),
};
/** Names that are long enough for a typing error in them to be known. */
const MISTYPED = ["from", "subject", "before", "after"];

/**
 * Reads what somebody types into a search: words, "phrases", begin*, -without, from:, to:, subject:, tag:, has:file,
 * before:DAY and after:DAY. Anything else is a word. Signs that are no letters or digits are no words.
 */
export function parseQuery(typed: string, { timezone }: { timezone: string }): SearchQuery {
  const query: SearchQuery = { terms: [], without: [], has_file: false };
  for (const piece of piecesOf(normalForm("NFC", typed))) {
    if (isFilter(query, piece, timezone)) continue;
    const term = termOf(piece);
    if (term.words.length > 0) (piece.without ? query.without : query.terms).push(term);
  }
  const count = [...query.terms, ...query.without].reduce((sum, { words }) => sum + words.length, 0);
  if (count > MAX_WORDS)
    throw invalid(
      "query.q",
      "too_many",
      `A search has at most ${MAX_WORDS} words, those of phrases included.`,
    );
  return query;
}

/** The term by which the messages of one address are found. */
export function fromTerm(address: string): Term {
  return termOf({ without: false, key: "from", text: address, quoted: true, starred: false });
}

/** Whether a search asks for messages with a tag, or for those without. */
export function asksForTags({ terms, without }: SearchQuery): boolean {
  return [...terms, ...without].some((term) => term.in === "tag");
}

/** Whether a search asks for anything at all. */
export function asksForNothing({ terms, without, has_file, since, until }: SearchQuery): boolean {
  return terms.length + without.length === 0 && !has_file && since === undefined && until === undefined;
}

interface Piece {
  without: boolean;
  /** What stands before a colon, in lower case; "" without one. */
  key: string;
  text: string;
  quoted: boolean;
  starred: boolean;
}

const BLANK = /\s/u;

/** Parts what was typed at its blanks and quotes, in one pass. A quote that is never closed reaches to the end. */
function piecesOf(typed: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  const until = (isEnd: (sign: string) => boolean): string => {
    const from = at;
    while (at < typed.length && !isEnd(typed[at] ?? "")) at += 1;
    return typed.slice(from, at);
  };
  while (at < typed.length) {
    const head = until((sign) => BLANK.test(sign) || QUOTES.has(sign));
    const begins = BEGINNING.exec(head);
    if (begins !== null && QUOTES.has(typed[at] ?? "")) {
      at += 1;
      const text = until((sign) => QUOTES.has(sign));
      at += 1;
      const starred = typed[at] === "*";
      refuseMisnamed(begins[2], text);
      pieces.push({ without: begins[1] === "-", key: keyOf(begins[2]), text, quoted: true, starred });
    } else if (head !== "") pieces.push(bareOf(head));
    else at += 1;
  }
  return pieces;
}

const QUOTES = new Set(['"', "“", "”", "„"]);
/** What may stand before a quote that begins a phrase. */
const BEGINNING = /^(-?)([a-z]+:)?$/i;

function bareOf(head: string): Piece {
  const without = head.length > 1 && head.startsWith("-");
  const rest = without ? head.slice(1) : head;
  const colon = rest.indexOf(":");
  const key = keyOf(rest.slice(0, colon + 1));
  refuseMisnamed(rest.slice(0, colon + 1), rest.slice(colon + 1));
  const text = key === "" ? rest : rest.slice(colon + 1);
  return { without, key, text, quoted: false, starred: text.endsWith("*") };
}

function keyOf(written = ""): string {
  const key = written.slice(0, -1).toLowerCase();
  return Object.hasOwn(PLACES, key) || FILTERS.has(key) ? key : "";
}

/**
 * Refuses what is meant for a field that there is not. Anything else with a colon is words, such as an address, a time, or
 * what ends with one.
 */
function refuseMisnamed(written = "", text: string): void {
  const name = written.slice(0, -1);
  if (text === "" || keyOf(written) !== "" || !/^[a-z]{2,12}$/i.test(name)) return;
  const key = name.toLowerCase();
  const near = MISTYPED.find((known) => isTypingErrorOf(known, key));
  if (near === undefined && !Object.hasOwn(ELSEWHERE, key)) return;
  const meant = near === undefined ? ELSEWHERE[key] : `${near}:`;
  const mend = meant === undefined ? `There are ${ALL_FIELDS}.` : `Did you mean ${meant}?`;
  throw invalid(
    "query.q",
    "unknown_field",
    `A search has no field ${name}:. ${mend} Put quotes around it to look for it as words.`,
  );
}

const ALL_FIELDS = "from:, to:, subject:, tag:, has:file, before: and after:";

/** Whether one letter is missing, too many, another one, or has changed places with the next. */
function isTypingErrorOf(known: string, typed: string): boolean {
  let same = 0;
  while (same < known.length && known[same] === typed[same]) same += 1;
  const [rest, left] = [known.slice(same), typed.slice(same)];
  const swapped = `${rest.charAt(1)}${rest.charAt(0)}${rest.slice(2)}`;
  return [
    left.slice(1) === rest,
    left === rest.slice(1),
    left.slice(1) === rest.slice(1),
    left === swapped,
  ].includes(true);
}

/** Takes in what is no word; false for words. */
function isFilter(query: SearchQuery, { key, text, without }: Piece, timezone: string): boolean {
  if (key === "has") {
    if (text.toLowerCase() !== "file" || without)
      throw invalid("query.q", "unknown_filter", "has: needs the word file, as in has:file.");
    query.has_file = true;
    return true;
  }
  if (key !== "before" && key !== "after") return false;
  const day = firstSecondOf(text, knownZone(timezone));
  if (day === undefined || without)
    throw invalid("query.q", "invalid_day", `${key}: needs a day, as in ${key}:2026-03-31.`);
  if (key === "after") query.since = Math.max(query.since ?? 0, day);
  else query.until = Math.min(query.until ?? Number.POSITIVE_INFINITY, day - 1);
  return true;
}

function firstSecondOf(day: string, zone: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) return undefined;
  try {
    const begins = Temporal.PlainDate.from(day, { overflow: "reject" }).toZonedDateTime(zone);
    return Math.floor(begins.epochMilliseconds / 1_000);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function termOf({ key, text, quoted, starred }: Piece): Term {
  const place = PLACES[key] ?? null;
  if (place === "tag") return tagTerm(text, starred && !quoted);
  const found = [...wordsIn(text)];
  const last = found.at(-1);
  const words = withoutRest(found).map((word) => word.text);
  const least = starred ? STARRED_CHARS : PREFIX_CHARS;
  const long_enough = last !== undefined && Array.from(last.text).length >= least;
  const prefix = isLoneSign(found) || (long_enough && last.single !== true && (starred || !quoted));
  return { in: place, words, prefix };
}

/** A tag is one word whatever signs it has, and found as a whole. */
function tagTerm(text: string, starred: boolean): Term {
  const tag = text.replace(/^[#+]/, "").replace(/\*$/, "").toLowerCase();
  return { in: "tag", words: tag === "" ? [] : [tag], prefix: starred };
}

/** The words without the last sign of a run, where it only repeats the second sign of the pair before it. */
function withoutRest(found: Word[]): Word[] {
  const [before, last] = found.slice(-2);
  return before !== undefined && last?.single === true && last.from < before.to ? found.slice(0, -1) : found;
}

/** Whether the last word is one sign of a script without blanks, which pairs begin with. */
function isLoneSign(found: Word[]): boolean {
  return found.at(-1)?.single === true && withoutRest(found).length === found.length;
}
