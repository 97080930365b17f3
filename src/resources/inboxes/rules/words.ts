import { normalForm } from "../../../lib/normal-form.ts";
import { findWords } from "../../../lib/find-words.ts";
import { decodeWords, type MailHeaders } from "../../../mail/reading/headers.ts";
import type { Condition, Rule } from "./rules.ts";

/** How far into a text its words are looked for, as it is compared. */
const MAX_CHARS = 50_000;
/** Characters that are made comparable at once: one character may become eighteen. */
const PIECE_CHARS = 2_000;

/** Where words are looked for, and which. */
export interface Sought {
  place: string;
  texts: string[];
  /** Whether the texts are values of a header, with encoded words in them. */
  coded: boolean;
  words: string[];
}

/** By place, the words that stand there. */
export type Found = Record<string, string[]>;

/** Text as it is compared: letters of any case and width, and all white space as one blank. */
export function comparable(text: string): string {
  return normalForm("NFKC", text).toLowerCase().split(/\s+/).join(" ").trim();
}

/** The name of the place that a condition looks for words in; null where it looks for none. */
export function placeOf({ field, name, contains }: Condition): string | null {
  if (contains.length === 0) return null;
  return field === "header" ? `header ${name}` : field;
}

/**
 * Returns which words rules look for in a message, and where. To look for them is work for a thread, once for each message: what
 * others write may be made to take long.
 */
export function soughtBy(
  rules: Pick<Rule, "when">[],
  message: { subject: string; text: string; headers: Pick<MailHeaders, "all"> | null },
): Sought[] {
  const places = new Map<string, Sought>();
  for (const condition of rules.flatMap(({ when }) => when)) {
    const place = placeOf(condition);
    if (place === null) continue;
    const sought = places.get(place) ?? { place, ...textsOf(condition, message), words: [] };
    sought.words.push(...condition.contains);
    places.set(place, sought);
  }
  return [...places.values()].filter(({ texts }) => texts.some((text) => text !== ""));
}

function textsOf(
  { field, name }: Condition,
  { subject, text, headers }: Parameters<typeof soughtBy>[1],
): Pick<Sought, "texts" | "coded"> {
  if (field === "header") return { texts: headers?.all(name) ?? [], coded: true };
  return { texts: [field === "subject" ? subject : text.slice(0, MAX_CHARS)], coded: false };
}

/** Looks for words, in time that grows with the texts and with the words, and not with both. */
export function findSought(sought: Sought[]): Found {
  const found = sought.map(({ place, texts, coded, words }): [string, string[]] => {
    const read = texts.map((text) => beginning(coded ? decodeWords(text) : text));
    // No word has a line end, so that none is found across two values.
    return [place, [...findWords(read.join("\n"), words)]];
  });
  return Object.fromEntries(found);
}

/** The beginning of a text as it is compared. It is read in pieces, so that no more is made than is looked at. */
function beginning(text: string): string {
  let read = "";
  for (let at = 0; at < text.length && read.length < MAX_CHARS;) {
    const end = pieceEnd(text, at);
    read += normalForm("NFKC", text.slice(at, end)).toLowerCase();
    at = end;
  }
  return read.split(/\s+/).join(" ").trim().slice(0, MAX_CHARS);
}

/** Where a piece ends that begins here: at white space if there is some, as letters may be put together of several characters. */
function pieceEnd(text: string, from: number): number {
  const end = from + PIECE_CHARS;
  if (end >= text.length) return text.length;
  for (let at = end; at > from; at--) if (/\s/.test(text.charAt(at))) return at;
  return text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) <= 0xdfff ? end + 1 : end;
}
