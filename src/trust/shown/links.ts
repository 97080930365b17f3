import { findLink, siteOf } from "./find-link.ts";
import { bareLetters } from "../../lib/bare-letters.ts";
import {
  CLOSERS,
  decoded,
  endsOf,
  escapeIn,
  isPlain,
  keysOf,
  MAIL,
  NO_SPACES,
  rawLinks,
  startOf,
  WEB,
} from "./link-keys.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";
import { LEFT_OUT, type LinkGuard, readableLink } from "../../mail/writing/markdown.ts";

/** The texts that a run has been shown, sorted by who wrote them. */
export interface Trust {
  /** Whether the model has read any text not written by a person with authority. */
  tainted: boolean;
  /** The words of the person with authority, and the owner's own documents. */
  trusted_text: string;
  /** All untrusted text that the model was shown. */
  material: string;
}

/** More of them could be a message of their own. */
const AFTER_LINK = /^[)\]}'*_~.,;:!?`|]{0,4}/;
/**
 * How many links of a site that only the material names are kept: the choice among very many links could encode a
 * secret.
 */
const MAX_OF_SITE = 10;
/** Addresses that are kept although something is glued to them, in one text without a blank: each is read to its end. */
const MAX_GLUED = 50;
/** Characters of what a call was asked, as each word of it is looked for in each URL that it answers with. */
const MAX_ASKED_CHARS = 4_000;

/**
 * Decides which links of an answer are kept. The model has read text of others, so anything it makes up in a host, path
 * or query may carry a message to them. A link is kept if a person with authority wrote it, or if it stood in the
 * material without room for additions; of the latter ten for each site, unless the trusted text names that site. Any
 * other link loses its URL. In a run that read nothing of others all are kept.
 */
export function linkGuard(trust: Trust): LinkGuard {
  if (!trust.tainted) return { left_out: 0, keeps: (url) => !isMailWithQuery(url), clean: (text) => text };
  const knownBy = vouching(trust);
  const chosen = new Map<string, Set<string>>();
  const keeps = (url: string): boolean => {
    const known = knownBy(url);
    if (known?.by !== "material" || !/^[a-z]+:\/\//.test(known.key)) return known !== undefined;
    const site = siteOf(known.key);
    const links = chosen.get(site) ?? new Set();
    if (links.size < MAX_OF_SITE) chosen.set(site, links.add(known.key));
    return links.has(known.key);
  };
  const guard: LinkGuard = {
    left_out: 0,
    keeps,
    clean(text) {
      const cleaned = cleanText(stripHiddenCharacters(text).text, (raw) =>
        endsOf(raw).find((end) => keeps(raw.slice(0, end))),
      );
      guard.left_out += cleaned.left_out;
      return cleaned.text;
    },
  };
  return guard;
}

interface Known {
  /** The URL in its normal form. */
  key: string;
  by: "trusted" | "material";
}

/** Returns a function that tells whether the trusted text or the material holds a URL; undefined where neither does. */
function vouching(trust: Trust): (url: string) => Known | undefined {
  let known: ReturnType<typeof knownIn> | undefined;
  return (url) => {
    if (isMailWithQuery(url)) return undefined;
    known ??= knownIn(trust);
    const { trusted, sites, material, written } = known;
    if (!written.has(url) && !isPlain(url)) return undefined;
    const keys = keysOf(url);
    const own = keys.find((key) => trusted.has(key));
    if (own !== undefined) return { key: own, by: "trusted" };
    const key = hasUserinfo(url) ? undefined : keys.find((one) => material.has(one) && !/[?#]/.test(one));
    return key === undefined ? undefined : { key, by: sites.has(siteOf(key)) ? "trusted" : "material" };
  };
}

function knownIn({ trusted_text, material }: Trust) {
  const own = rawIn(trusted_text);
  const others = rawIn(material);
  const trusted = new Set([...own].flatMap(keysOf));
  // A mail address names no site: everybody at a large provider shares its domain.
  const pages = [...trusted].filter((key) => WEB.test(key));
  return {
    trusted,
    sites: new Set(pages.map(siteOf)),
    material: new Set([...others].flatMap(keysOf)),
    written: new Set([...own, ...others]),
  };
}

/** Returns Markdown without the URLs of refused links; the text of these links stays. */
export function guardMarkdown(markdown: string, guard: LinkGuard): string {
  const visible = stripHiddenCharacters(markdown).text;
  const plain = visible.replaceAll(INLINE_LINK, (link: string, words: string, address: string) => {
    if (guard.keeps(address) || !isLink(address)) return link;
    const shown = guard.clean(words);
    if (shown.endsWith(LEFT_OUT)) return shown;
    guard.left_out += 1;
    return `${shown} ${LEFT_OUT}`.trim();
  });
  return guard.clean(plain);
}

/** Returns the normal forms of URLs in a tool call's arguments (JSON) that the model made up. */
export function madeUpLinks(trust: Trust, args: string): string[] {
  const knownBy = vouching(trust);
  const given = new Set(textsIn(args).flatMap((text) => [...rawLinks(text)].map(({ raw }) => raw)));
  return [...given].filter((raw) => knownBy(raw) === undefined).flatMap(keysOf);
}

/**
 * Adds what a tool returned to the material, without URLs that the model had made up: an echo proves nothing. What a call says
 * that failed repeats more of what it was `asked`: no word of that may stand in a URL of it.
 */
export function learnFrom(
  trust: Trust,
  said: { text: string; made_up: Set<string>; asked?: string | undefined },
): void {
  const repeats = said.asked === undefined ? () => false : repeating(said.asked);
  const isMadeUp = (raw: string): boolean =>
    repeats(raw) || endsOf(raw).some((end) => keysOf(raw.slice(0, end)).some((key) => said.made_up.has(key)));
  const { text } = cleanText(said.text, (raw) => (isMadeUp(raw) ? undefined : raw.length));
  trust.material += `\n${text}`;
  trust.tainted = true;
}

/** Returns a function that tells whether a URL has a word of another text, or stands in its letters; every one does where that is long. */
function repeating(asked: string): (raw: string) => boolean {
  if (asked.length > MAX_ASKED_CHARS) return () => true;
  const words = new Set(wordsIn(asked));
  const letters = bareLetters(asked);
  const long = [...words].filter(isLong);
  return (raw) => {
    const shown = `${raw} ${decoded(raw)}`;
    const all = bareLetters(shown);
    return (
      wordsIn(shown).some((word) => words.has(word) || (isLong(word) && letters.includes(word))) ||
      long.some((word) => all.includes(word))
    );
  };
}

function wordsIn(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function isLong(word: string): boolean {
  return word.length > 2;
}

/** Returns every string of a JSON value, member names included. */
function textsIn(json: string): string[] {
  const texts: string[] = [];
  try {
    JSON.parse(json, (name: string, value: unknown) => {
      texts.push(name, ...(typeof value === "string" ? [value] : []));
      return value;
    });
  } catch {
    // Arguments that are not JSON made no call; the model wrote all of them.
    texts.push(json);
  }
  return texts;
}

/** Returns whether `address`, maybe with Markdown escapes, is a link that has to be removed. */
export function isRefusedLink(address: string, guard: LinkGuard): boolean {
  return isLink(address) && !guard.keeps(address) && !guard.keeps(readableLink(address));
}

/** Returns whether a text ends inside a URL. */
export function endsInLink(text: string): boolean {
  for (let link = findLink(text, 0); link; link = findLink(text, link.end))
    if (link.end === text.length) return true;
  return false;
}

const INLINE_LINK =
  /!?\[([^[\]\n]{0,1000})\]\(\s{0,10}<?([^\s<>()]{1,4000}(?:\([^\s<>()]{0,1000}\)[^\s<>()]{0,4000}){0,5})>?(?:\s{1,10}(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s{0,10}\)/g;

function isLink(address: string): boolean {
  return findLink(address, 0) !== undefined;
}

/** Removes links from a text; `keptOf` returns how many characters of a URL may be kept, if any. */
function cleanText(
  text: string,
  keptOf: (raw: string) => number | undefined,
): { text: string; left_out: number } {
  const parts: string[] = [];
  let left_out = 0;
  let at = 0;
  let last = { end: -1, glued: 0 };
  for (let link = findLink(text, at); link; link = findLink(text, at)) {
    const start = startOf(text, link);
    const raw = text.slice(start, link.end);
    last = { end: link.end, glued: link.end === last.end ? last.glued + 1 : 0 };
    const kept = last.glued < MAX_GLUED ? keptOf(raw) : undefined;
    if (kept === undefined) {
      parts.push(text.slice(at, start), LEFT_OUT);
      const escape = escapeIn(raw);
      at = escape < 0 ? link.end - (CLOSERS.exec(raw)?.[0].length ?? 0) : start + escape;
      left_out += 1;
    } else {
      const end = start + kept;
      const edge = edgeAfter(text, end);
      const before = start > link.start && mayJoin(text.charAt(start - 1)) ? " " : "";
      parts.push(text.slice(at, start), before, text.slice(start, edge), gapAt(text, edge));
      at = edge;
    }
  }
  return { text: parts.join("") + text.slice(at), left_out };
}

/** Returns the end of a kept address with the marks behind it. */
function edgeAfter(text: string, end: number): number {
  return end + (AFTER_LINK.exec(text.slice(end, end + 4))?.[0].length ?? 0);
}

/** Returns whether a program could take a letter right before an address for its beginning. */
function mayJoin(letter: string): boolean {
  return NO_SPACES.test(letter) || /[a-z0-9]/i.test(letter);
}

/** Returns a space if the text right behind a kept URL could be taken for a part of it. */
function gapAt(text: string, at: number): string {
  // The URL behind the text of a Markdown link is judged by itself.
  const is_apart = /^(?:$|[\s<>"]|\((?:https?:|mailto:))/i.test(text.slice(at, at + 8));
  return is_apart ? "" : " ";
}

function rawIn(text: string): Set<string> {
  return new Set([...rawLinks(stripHiddenCharacters(text).text)].map(({ raw }) => raw));
}

function isMailWithQuery(url: string): boolean {
  return /^mailto:[^?]*\?/i.test(url);
}

function hasUserinfo(url: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]*:)?[/\\]*[^/\\?#]*@/i.test(url) && !MAIL.test(url);
}
