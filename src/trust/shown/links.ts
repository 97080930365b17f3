import { findLink, MAX_LINK_CHARS, siteOf } from "./find-link.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";
import { LEFT_OUT, type LinkGuard, readableLink } from "../../mail/writing/markdown.ts";

/** The texts that a run has been shown, by who wrote them. */
export interface Trust {
  /** Whether the model has seen any text that is not of a person with authority. */
  tainted: boolean;
  /** Words of the person with authority and of the owner's own documents. */
  trusted_text: string;
  /** Everything untrusted that the model was shown. */
  material: string;
}

/** Marks that may follow an address without being part of it. */
const CLOSERS = /[)'*,;.!?:~_]{1,8}$/;
const NO_SPACES = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]/u;
const PREFIX = new RegExp(`^(?:[\`'{|}/*~_]{1,8}|${NO_SPACES.source}+)`, "u");
/** More of them could be a message of their own. */
const AFTER_LINK = /^[)\]}'*_~.,;:!?`|]{0,4}/;
const NOT_ASCII = /[^!-~]/;
const WEB = /^(?:https?|ftps?|wss?):/i;
const OTHER_SCHEME = /^[a-z][a-z0-9+.-]*:(?:[/\\]{2}|(?!\d+(?:[/\\?#]|$)))/i;
const MAIL = /^(?:mailto:)?([^\s@/\\:?#]+@[^\s@/\\:?#]+)$/i;
/**
 * At most so many links of a site that only the material names are kept: which links a text chooses among very many could
 * tell a secret.
 */
const MAX_OF_SITE = 10;
/** A host name has at most 253; what is longer takes a URL parser the square of its length. */
const MAX_HOST_CHARS = 300;
/** Addresses that are kept although something is glued to them, in one text without a blank: each is read to its end. */
const MAX_GLUED = 50;

/**
 * Which links of an answer may stay. The model has read what others wrote, and whatever it then makes up, in the
 * host or the path as well as in a query, may be a message to them. So a link stays if a person with authority
 * wrote it, or if it stood in the material and has no place for anything to be added to, and then ten to a site,
 * unless that is a site of the trusted words. Any other loses its address. In a run that read nothing of others all stay.
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
  /** The address in its one form. */
  key: string;
  by: "trusted" | "material";
}

/** Returns a function that says who vouches for an address; undefined where nobody does. */
function vouching(trust: Trust): (url: string) => Known | undefined {
  let known: { trusted: Set<string>; sites: Set<string>; material: Set<string> } | undefined;
  return (url) => {
    known ??= knownIn(trust);
    const { trusted, sites, material } = known;
    if (isMailWithQuery(url)) return undefined;
    const keys = keysOf(url);
    const own = keys.find((key) => trusted.has(key));
    if (own !== undefined) return { key: own, by: "trusted" };
    const key = hasUserinfo(url) ? undefined : keys.find((one) => material.has(one) && !/[?#]/.test(one));
    return key === undefined ? undefined : { key, by: sites.has(siteOf(key)) ? "trusted" : "material" };
  };
}

function knownIn({ trusted_text, material }: Trust) {
  const trusted = keysIn(trusted_text);
  // A mail address is no page: everybody at a large provider has one of its name.
  const pages = [...trusted].filter((key) => WEB.test(key));
  return { trusted, sites: new Set(pages.map(siteOf)), material: keysIn(material) };
}

/** Markdown without the addresses that may not stay; the words of its links do. */
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

/** The addresses in the arguments of calls (JSON) that the model itself has made up, in their one form. */
export function madeUpLinks(trust: Trust, args: string): string[] {
  const knownBy = vouching(trust);
  const given = new Set(textsIn(args).flatMap((text) => Array.from(rawLinks(text))));
  return [...given].filter((raw) => knownBy(raw) === undefined).flatMap(keysOf);
}

/** Adds what a tool said to the material. What was made up is no better for coming back from there. */
export function learnFrom(trust: Trust, said: { text: string; made_up: Set<string> }): void {
  const isMadeUp = (raw: string): boolean =>
    endsOf(raw).some((end) => keysOf(raw.slice(0, end)).some((key) => said.made_up.has(key)));
  const { text } = cleanText(said.text, (raw) => (isMadeUp(raw) ? undefined : raw.length));
  trust.material += `\n${text}`;
  trust.tainted = true;
}

/** Every text of a JSON value, names included. */
function textsIn(json: string): string[] {
  const texts: string[] = [];
  try {
    JSON.parse(json, (name: string, value: unknown) => {
      texts.push(name, ...(typeof value === "string" ? [value] : []));
      return value;
    });
  } catch {
    // What is no JSON was no call either, and whatever it says is said by the model.
    texts.push(json);
  }
  return texts;
}

/** Whether it is a link that may not stay; `address` may be as Markdown writes it, with escapes of its own. */
export function isRefusedLink(address: string, guard: LinkGuard): boolean {
  return isLink(address) && !guard.keeps(address) && !guard.keeps(readableLink(address));
}

/** Whether an address reaches to the end of a text. */
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

/** `keptOf` says how many characters of an address may stay, if any. */
function cleanText(
  text: string,
  keptOf: (raw: string) => number | undefined,
): { text: string; left_out: number } {
  const parts: string[] = [];
  let left_out = 0;
  let at = 0;
  let last = { end: -1, glued: 0 };
  for (let link = findLink(text, at); link; link = findLink(text, at)) {
    const start = link.start + prefixOf(text.slice(link.start, link.end));
    const raw = text.slice(start, link.end);
    last = { end: link.end, glued: link.end === last.end ? last.glued + 1 : 0 };
    const kept = last.glued < MAX_GLUED ? keptOf(raw) : undefined;
    if (kept === undefined) {
      parts.push(text.slice(at, start), LEFT_OUT);
      at = link.end - (CLOSERS.exec(raw)?.[0].length ?? 0);
      left_out += 1;
    } else {
      const end = start + kept;
      const edge = edgeAfter(text, end);
      const before = start > link.start && NO_SPACES.test(text.charAt(start - 1)) ? " " : "";
      parts.push(text.slice(at, start), before, text.slice(start, edge), gapAt(text, edge));
      at = edge;
    }
  }
  return { text: parts.join("") + text.slice(at), left_out };
}

/** Marks, or words of a script without spaces, that stand right before an address and are none of it. */
function prefixOf(raw: string): number {
  return PREFIX.exec(raw)?.[0].length ?? 0;
}

/** Returns the end of a kept address with the marks behind it. */
function edgeAfter(text: string, end: number): number {
  return end + (AFTER_LINK.exec(text.slice(end, end + 4))?.[0].length ?? 0);
}

/** A space, where something is glued to a kept address that a mail program could take for a part of it. */
function gapAt(text: string, at: number): string {
  // Behind the words of a Markdown link stands a link that is looked at itself.
  const isApart = /^(?:$|[\s<>"]|\((?:https?:|mailto:))/i.test(text.slice(at, at + 8));
  return isApart ? "" : " ";
}

/** Returns where an address may end that has other marks or other scripts behind it, the longest first. */
function endsOf(raw: string): number[] {
  const stops = [raw.length, raw.search(NOT_ASCII), unbalanced(raw)].filter((stop) => stop > 0);
  const ends = stops.flatMap((stop) => {
    const closers = CLOSERS.exec(raw.slice(Math.max(0, stop - 8), stop))?.[0].length ?? 0;
    return Array.from({ length: closers + 1 }, (_, count) => stop - count);
  });
  return ends.filter((end) => end > 0).sort((one, other) => other - one);
}

/** The first closing bracket that was not opened inside. */
function unbalanced(raw: string): number {
  let depth = 0;
  for (let at = 0; at < raw.length; at += 1) {
    if (raw[at] === "(") depth += 1;
    else if (raw[at] === ")" && --depth < 0) return at;
  }
  return -1;
}

function* rawLinks(text: string): Generator<string> {
  for (let link = findLink(text, 0); link; link = findLink(text, link.end)) {
    const found = text.slice(link.start, link.end);
    const raw = found.slice(prefixOf(found));
    for (const end of endsOf(raw)) yield raw.slice(0, end);
  }
}

function keysIn(text: string): Set<string> {
  return new Set([...rawLinks(stripHiddenCharacters(text).text)].flatMap(keysOf));
}

/** An address in the one form of all that lead to the same; without a scheme, as either of the web's. */
function keysOf(raw: string): string[] {
  const address = MAIL.exec(raw)?.[1];
  if (address !== undefined) return [`mailto:${address.toLowerCase()}`];
  if (raw.length > MAX_LINK_CHARS) return [raw];
  if (WEB.test(raw)) return [webKey(raw)];
  if (OTHER_SCHEME.test(raw)) return [raw];
  return ["https", "http"].map((scheme) => webKey(`${scheme}://${raw}`));
}

function webKey(raw: string): string {
  const host = /^[a-z]+:[/\\]*([^/\\?#]*)/i.exec(raw)?.[1] ?? "";
  const url = host.length > MAX_HOST_CHARS ? null : URL.parse(raw);
  return url === null ? raw : url.href.replace(/^([^?#]*)\/$/, "$1");
}

function isMailWithQuery(url: string): boolean {
  return /^mailto:[^?]*\?/i.test(url);
}

function hasUserinfo(url: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]*:)?[/\\]*[^/\\?#]*@/i.test(url) && !MAIL.test(url);
}
