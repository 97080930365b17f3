import { wordsInKey } from "./prose.ts";
import { wordSet } from "./words.ts";

/** What the results of a tool server have named by an id that looks like a mail address. */
export interface GivenIds {
  /** Every word with an `@`. */
  words: string[];
  /** Members of results that are JSON: their name without the plural, and their value. */
  members: [name: string, value: string][];
}

/** How much of a result the model is shown, and what is remembered of all results of a server. */
const MAX_RESULT_CHARS = 50_000;
const MAX_GIVEN = 2_000;
const MAX_ID_CHARS = 300;
/** Words in the names of ids of what is no person and no place, and has ids with an `@` (RFC 5322, RFC 5545). */
const THINGS = wordSet("message messages msg event events ical i cal rfc internet");
const WHOLE_NAME = /^(?:in_?reply_?to|references|(?:rfc822)?msgids?|icaluids?)$/i;
const ID = /^u?ids?$/;
/** Names that say nothing of what they are an id of. */
const PLAIN = /^u?id$/;

export function noGivenIds(): GivenIds {
  return { words: [], members: [] };
}

/** Adds the ids in a result. */
export function addGiven(given: GivenIds, result: string): void {
  const text = result.slice(0, MAX_RESULT_CHARS);
  const words = text.split(/[\s"'<>()[\]{},;]+/).filter(isId);
  given.words.push(...words.slice(0, MAX_GIVEN - given.words.length));
  const members = membersIn(text).filter(([, value]) => isId(value));
  given.members.push(...members.slice(0, MAX_GIVEN - given.members.length));
}

function isId(word: string): boolean {
  return word.length <= MAX_ID_CHARS && /[^@]@[^@]/.test(word);
}

function membersIn(text: string): [string, string][] {
  const members: [string, string][] = [];
  try {
    JSON.parse(text, (name: string, value: unknown) => {
      if (typeof value === "string") members.push([singular(name), bare(value)]);
      return value;
    });
  } catch {
    return [];
  }
  return members;
}

/**
 * Returns whether a value is an id that the same server has given in this run and that goes back to it: the id of a
 * message or an event, or what stood below the same name. Of a person, a calendar or a chat it would be a place.
 */
export function isGivenId(key: string, value: string, { words, members }: GivenIds): boolean {
  const ids = value
    .trim()
    .split(/[\s,]+/)
    .map(bare);
  const name = singular(key);
  if (PLAIN.test(name))
    return ids.every((id) => members.some(([other, one]) => other === name && one === id));
  return isOfThing(key) && ids.every((id) => words.includes(id));
}

function isOfThing(key: string): boolean {
  const words = wordsInKey(key).filter((word) => word !== "");
  const names = words.slice(0, -1);
  const is_id = ID.test(words.at(-1) ?? "") && names.length > 0;
  return WHOLE_NAME.test(key) || (is_id && names.every((word) => THINGS.has(word)));
}

function singular(name: string): string {
  return name.toLowerCase().replace(/s$/, "");
}

/** Returns an id without the brackets that are none of it. */
function bare(id: string): string {
  return /^<[^<>]*>$/.test(id) ? id.slice(1, -1) : id;
}
