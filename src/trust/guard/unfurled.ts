import { siteOf } from "../shown/find-link.ts";
import { keysOf, rawLinks } from "../shown/link-keys.ts";
import { parseJson } from "../../lib/foreign-json.ts";
import { asRead } from "./as-read.ts";
import { knownIn, namesAddress } from "./named-addresses.ts";
import { isFileName } from "./odd-address.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { isProseKey } from "./prose.ts";

/** Addresses of a site that only the material names: by its choice among many a model could tell something. */
export const MAX_OF_SITE = 20;
/** An address that programs make a link of: with a scheme of the web, or with a path. */
const WEB = /^(?:https?|ftps?):|^www\d{0,3}\./i;
/** The same within what begins with another scheme, or with a name: chats look for it anywhere. */
const WEB_INSIDE = /(?:https?|ftps?):[/\\]/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:(?!\d)/i;
const PATH = /[/\\?#]/;
/** Characters without which a text holds no such address: as it stands, and in any form that programs read. */
const MAY_LEAD = /[/\\]|www\d{0,3}\.|\.[^\s?#]{1,63}[?#]/i;
const MAY_BE_READ = /[%&]|=\?|\P{ASCII}/u;
/** Names of formats, which stand in the source of pages and pictures and belong to their standards. */
const FORMAT = /^https?:\/\/(?:www\.w3\.org|schema\.org)\//i;

/**
 * Returns an address in what a tool is to write down that is neither named by the trusted text nor stands in what the
 * run has read; undefined if there is none. Chats and wikis fetch an address once it is shown, and what a model made up
 * in it may tell a secret.
 */
export function madeUpAddress(
  args: Record<string, unknown>,
  { trusted_text, material }: { trusted_text: string; material: string },
): string | undefined {
  let read: ReadonlySet<string> | undefined;
  const known = knownIn(trusted_text);
  const isKnown = (ways: string[]): boolean => {
    const keys = ways.flatMap(keysOf);
    if (keys.some((key) => known.pages().has(key))) return true;
    if (ways.some((way) => namesAddress(known, way, { read_only: false }))) return true;
    read ??= keysRead(material);
    return keys.some((key) => read?.has(key));
  };
  for (const given of textsIn(args)) {
    // Such a call was already refused, because its destination cannot be determined.
    if (given === TOO_MUCH) return undefined;
    if (typeof given.value !== "string" || !isProseKey(given.key)) continue;
    const stray = linksIn(given.value).find(({ ways }) => !isKnown(ways));
    if (stray !== undefined) return stray.raw;
  }
  return undefined;
}

interface Link {
  raw: string;
  /** Where it begins. */
  at: number;
  /** What it may be meant as; empty if it has no certain end. */
  ways: string[];
}

/** The links in a text, as it stands and as programs read it, each in all ways to end it. */
function linksIn(text: string): Link[] {
  if (!MAY_LEAD.test(text) && !MAY_BE_READ.test(text)) return [];
  const links: Link[] = [];
  const is_json = isJson(text);
  for (const form of formsOf(is_json ? text.replaceAll(JSON_ESCAPE, " ") : text)) {
    if (!MAY_LEAD.test(form)) continue;
    let last: Link = { at: -1, raw: "", ways: [] };
    for (const { raw, at } of rawLinks(form)) {
      if (at !== last.at) {
        if (!isFetched(raw)) continue;
        links.push((last = { at, raw, ways: [] }));
      }
      const ends = { at, end: at + raw.length, is_whole: raw === last.raw, is_json };
      if (endsAt(form, ends)) last.ways.push(raw);
    }
  }
  return links;
}

/**
 * So few marks that which ones there are tells hardly anything, up to a blank at which every program ends an address: many
 * take other blanks of Unicode for a part of it.
 */
const ENDS = /^[)\]}(*_~.,;:!?|`'"’”“»›…]{0,4}(?:$|[\t\n\v\f\r <])/;
/** Behind a link that is read as far as it goes another one is judged by itself. */
const GOES_ON = /^[)\]}(*_~.,;:!?|`'"’”“»›…]{0,4}https?:/;
/** In JSON what is open says which brackets follow. */
const ENDS_IN_JSON = /^"[\]}]{0,20},?(?:$|[\t\n\v\f\r <])/;
/** What stands before an address in angle brackets, or in an attribute of HTML, and behind it. */
const OPENS_TAG = /<(?:[a-z][^<>]{0,500}=\s?["']?)?$/i;
const ENDS_TAG = /^["']?\s?\/?>/;
const MAX_TAG_CHARS = 520;
const MAX_END_CHARS = 30;

/**
 * Returns whether an address ends here for every program. Some make a link of all up to the next blank, so a letter behind
 * a known address would make it another one of the same site, and could tell something there.
 */
function endsAt(
  text: string,
  { at, end, is_whole, is_json }: { at: number; end: number; is_whole: boolean; is_json: boolean },
): boolean {
  const behind = text.slice(end, end + MAX_END_CHARS);
  if (ENDS.test(behind) || (is_json && ENDS_IN_JSON.test(behind))) return true;
  if (is_whole && GOES_ON.test(behind)) return true;
  return ENDS_TAG.test(behind) && OPENS_TAG.test(text.slice(Math.max(0, at - MAX_TAG_CHARS), at));
}

/** An escape that stands for a character in a text of JSON, whose values are looked at by themselves. */
const JSON_ESCAPE = /\\[nrtbf"]/g;

function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text) && /[\]}]\s*$/.test(text) && parseJson(text) !== undefined;
}

const WORD = /[^\s<>"]+/g;

/** A text as it stands, and as programs read each word of it. */
function formsOf(text: string): Set<string> {
  const read = text.replaceAll(WORD, (word) =>
    MAY_BE_READ.test(word) || word.includes("\\") ? asRead(word).replaceAll(/[\s<>"]/g, "%") : word,
  );
  return new Set([text, read]);
}

function isFetched(raw: string): boolean {
  if (WEB.test(raw)) return !FORMAT.test(raw);
  if (WEB_INSIDE.test(raw)) return true;
  if (SCHEME.test(raw) || !PATH.test(raw)) return false;
  const [host = ""] = raw.split(PATH, 1);
  return !host.includes("@") && !isFileName(host, { in_path: true, texts_only: false });
}

function keysRead(material: string): ReadonlySet<string> {
  const read = new Set<string>();
  for (const text of formsOf(material)) {
    const of_site = new Map<string, Set<number>>();
    for (const { raw, at } of rawLinks(text)) {
      const keys = keysOf(raw);
      const site = siteOf(keys[0] ?? raw);
      const places = of_site.get(site) ?? new Set();
      of_site.set(site, places);
      if (places.size >= MAX_OF_SITE && !places.has(at)) continue;
      places.add(at);
      for (const key of keys) read.add(key);
    }
  }
  return read;
}
