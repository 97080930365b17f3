import { siteOf } from "../shown/find-link.ts";
import { isPlain, keysOf, rawLinks } from "../shown/link-keys.ts";
import { parseJson } from "../../lib/foreign-json.ts";
import { asRead } from "./as-read.ts";
import { knownIn, namesAddress } from "./named-addresses.ts";
import { isFileName } from "./odd-address.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { isApart, marksBehind } from "./address-ends.ts";
import { isProseKey } from "./prose.ts";
import { shownIn } from "./shown-values.ts";

/** Addresses of a site that only the material names: by its choice among many a model could tell something. */
export const MAX_OF_SITE = 20;
/** An address that programs make a link of: with a scheme of the web, or with a path. */
const WEB = /^(?:https?|ftps?):|^www\d{0,3}\./i;
/** The same within what begins with another scheme, or with a name: chats look for it anywhere. */
const WEB_INSIDE = /(?:https?|ftps?):[/\\]|[^a-z0-9]www\d{0,3}\./i;
const SCHEME = /^[a-z][a-z0-9+.-]*:(?!\d)/i;
const PATH = /[/\\?#]/;
/** Characters without which a text holds no such address: as it stands, and in any form that programs read. */
const MAY_LEAD = /[/\\]|www\d{0,3}\.|\.[^\s?#]{1,63}[?#]/i;
const MAY_BE_READ = /[%&]|=\?|\P{ASCII}/u;
/** Names of formats, which stand in the source of pages and pictures and belong to their standards. */
const FORMAT = /^https?:\/\/(?:www\.w3\.org|schema\.org)\//i;

/** How much the addresses that a run writes may tell one site: less than a short sentence. */
const MAX_BITS = 160;
/** What a mark behind an address tells, where a program takes it for a part of it. */
const MARK_BITS = 4;

/**
 * How many calls of a run may write addresses of a site that only the material names: by how many there are, and when, a site that is
 * asked by each could be told a code of six digits.
 */
const MAX_CALLS_OF_SITE = 3;

/** An address that is written down, and could be fetched. */
export interface Writing {
  site: string;
  address: string;
  /** The marks behind it. */
  marks: string;
  /** How many addresses of the site could have been written in its place. */
  among: number;
  /** Whether the trusted text names it. */
  named: boolean;
}

/** What stands in the way of writing an address: it is made up, or its site is told too much by all that are written. */
export interface Unfit {
  address: string;
  why: "made_up" | "tells";
}

/** What templates put something else in place of, an address with something behind it as well. */
const TEMPLATE = /\{[{%]|\$\{|<%|^[ \t]{0,20}!(?:\$|def|include|import|theme)/m;

interface Texts {
  trusted_text: string;
  /** All that the run has read of others' words. */
  material: string;
}

/**
 * Returns an address in what a tool is to write down that is neither named by the trusted text nor stands in what the
 * run has read, or one too many; undefined if there is none. Chats and wikis fetch an address once it is shown, and what a
 * model made up in it may tell a secret, as may which one it writes, how often, and with which marks behind it.
 */
export function unfitAddress(
  args: Record<string, unknown>,
  { written, ...texts }: Texts & { written: Writing[][] },
): Unfit | undefined {
  const { writings, made_up } = writingsIn(args, texts);
  if (made_up !== undefined) return { address: made_up, why: "made_up" };
  const bits = bitsBySite([...written.flat(), ...writings]);
  const calls = callsBySite(written);
  const telling = writings.find(
    ({ site, named }) =>
      (bits.get(site) ?? 0) > MAX_BITS || (!named && (calls.get(site) ?? 0) >= MAX_CALLS_OF_SITE),
  );
  return telling && { address: telling.address, why: "tells" };
}

/** Returns the addresses that a call writes down, up to the first one that is made up. */
export function writingsIn(
  args: Record<string, unknown>,
  { trusted_text, material }: Texts,
): { writings: Writing[]; made_up?: string } {
  let read: Read | undefined;
  const known = knownIn(trusted_text);
  const writings: Writing[] = [];
  for (const given of textsIn(args)) {
    // Such a call was already refused, because its destination cannot be determined.
    if (given === TOO_MUCH) break;
    if (typeof given.value !== "string" || !isProseKey(given.key)) continue;
    const is_template = TEMPLATE.test(given.value);
    for (const { raw, ways } of linksIn(given.value)) {
      const isNamed = ({ address }: Way): boolean => namesAddress(known, address, { read_only: false });
      const way = ways.find(
        (one) =>
          trusted_text.includes(one.around) &&
          (isNamed(one) || (!is_template && isRead((read ??= readIn(material)), one.address))),
      );
      if (way === undefined) return { writings, made_up: raw };
      const site = siteOf(keysOf(way.address)[0] ?? way.address);
      const { address, marks } = way;
      const among = read?.sites.get(site)?.size ?? 1;
      writings.push({ address, marks, site, among, named: isNamed(way) });
    }
  }
  return { writings };
}

/** How much each site can tell by the addresses of it that are written. */
function bitsBySite(writings: Writing[]): Map<string, number> {
  const bits = new Map<string, number>();
  const seen = new Map<string, { addresses: Set<string>; endings: Set<string> }>();
  for (const { site, address, marks, among } of writings) {
    const { addresses, endings } = seen.get(site) ?? { addresses: new Set(), endings: new Set() };
    const choice = addresses.has(address) ? addresses.size : Math.max(among, addresses.size + 1);
    const ending = endings.has(marks) ? Math.log2(endings.size) : marks.length * MARK_BITS;
    bits.set(site, (bits.get(site) ?? 0) + Math.log2(choice) + ending);
    seen.set(site, { addresses: addresses.add(address), endings: endings.add(marks) });
  }
  return bits;
}

/** How many calls have written addresses of each site that only the material names. */
function callsBySite(written: Writing[][]): Map<string, number> {
  const calls = new Map<string, number>();
  for (const call of written)
    for (const site of new Set(call.flatMap((one) => (one.named ? [] : [one.site]))))
      calls.set(site, (calls.get(site) ?? 0) + 1);
  return calls;
}

interface Way extends Pick<Writing, "address" | "marks"> {
  /** The address between what stands around it, where something is open there that could go on behind it; empty elsewhere. */
  around: string;
}

interface Link {
  raw: string;
  /** Where it begins. */
  at: number;
  /** What it may be meant as, each with the marks behind it; empty if it has no certain end. */
  ways: Way[];
}

/** The links in a text, as it stands and as programs read it, each in all ways to end it. */
function linksIn(text: string): Link[] {
  if (!MAY_LEAD.test(text) && !MAY_BE_READ.test(text)) return [];
  const is_json = isJson(text);
  const whole = is_json ? text.replaceAll(JSON_ESCAPE, " ") : unfolded(text);
  const [plain = [], read] = [...formsOf(whole)].map((form) => linksInForm(form, is_json));
  const is_same = plain.length === read?.length && plain.every(({ raw }, nth) => raw === read[nth]?.raw);
  const written = is_same || read === undefined ? plain : [...plain, ...read];
  return written.concat(shownLinks(text, written));
}

/** What runs in the page that shows it, once somebody follows it. */
const RUNS = /^(?:javascript|vbscript|data|blob|file):/i;

/** Returns the links that a browser finds in a text and that do not stand in it as they are followed. */
function shownLinks(text: string, written: Link[]): Link[] {
  const { addresses, values } = shownIn(text);
  const known = new Set(written.flatMap(({ raw, ways }) => [raw, ...ways.map(({ address }) => address)]));
  const links = addresses.filter((address) => isFetched(address) || RUNS.test(address));
  const found = links.map((raw) => ({ raw, at: 0, ways: [{ address: raw, marks: "", around: "" }] }));
  return found
    .concat(linksInForm(values.join("\n"), false))
    .filter(({ raw, ways }) => !known.has(raw) && !ways.some(({ address }) => known.has(address)));
}

/** A calendar or card without the breaks of its lines that are no blanks (RFC 5545 §3.1). */
function unfolded(text: string): string {
  return /^\s*BEGIN:V/i.test(text) ? text.replaceAll(/\r?\n[ \t]/g, "") : text;
}

/** What all others in a page are read as the rest of. */
const BASE = /<base(?![\w-])[^<>]{0,200}/i;
const MAX_SHOWN_CHARS = 100;

/** Returns the addresses in a text that may go on behind where they seem to end, each with what stands there. */
export function goingOnIn(text: string): string[] {
  const open = linksInForm(text, false).filter(({ ways }) => ways.every(({ around }) => around !== ""));
  return [...open.map(({ at }) => text.slice(at, at + MAX_SHOWN_CHARS)), ...(BASE.exec(text) ?? [])];
}

function linksInForm(form: string, is_json: boolean): Link[] {
  const links: Link[] = [];
  if (!MAY_LEAD.test(form)) return links;
  let last: Link = { at: -1, raw: "", ways: [] };
  for (const { raw, at } of rawLinks(form)) {
    if (at !== last.at) {
      if (!isFetched(raw)) continue;
      links.push((last = { at, raw, ways: [] }));
    }
    const ends = { at, end: at + raw.length, is_json };
    const marks = marksBehind(form, ends);
    const around = isApart(form, ends) ? "" : form.slice(Math.max(0, at - 1), ends.end + 1);
    if (marks !== undefined) last.ways.push({ address: raw, marks, around });
  }
  for (const { 0: raw, index: at } of form.matchAll(SCHEMELESS))
    links.push({ raw, at, ways: [{ address: `https:${raw}`, marks: "", around: "" }] });
  return links;
}

/** A host behind two slashes is one whatever it looks like, with a name before it too. */
const SCHEMELESS = /(?<![^\s"'=(<>[{,;|])[/\\]{2}[^\s/\\"'<>.@]+[.@][^\s"'<>]{1,300}/g;

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

/** The addresses of a text. */
interface Read {
  /** As they stand there. */
  written: Set<string>;
  /** Each in the one form of all that lead to the same. */
  keys: Set<string>;
  /** By site, the places in the text at which its addresses stand. */
  sites: Map<string, Set<number>>;
}

function isRead({ written, keys }: Read, address: string): boolean {
  return written.has(address) || (isPlain(address) && keysOf(address).some((key) => keys.has(key)));
}

/** Mail addresses, numbers of telephones, and what no host has. */
const NO_SITE = /^[^/\\?#]*@|^[\d\s().+-]*$|^(?!.*[.:/\\])/s;

/** Returns whether a place is a web address or a site that stands nowhere in what a run was told and has read. */
export function isMadeUpSite(place: string, { trusted_text, material }: Texts): boolean {
  if (NO_SITE.test(place) || (SCHEME.test(place) && !WEB.test(place) && !WEB_INSIDE.test(place)))
    return false;
  const stands = (text: string): boolean => namesAddress(knownIn(text), place, { read_only: false });
  return !stands(trusted_text) && !stands(material) && !isRead(readIn(material), place);
}

/** Escapes by which JSON writes a slash, and a query as it may stand in HTML. They make no address of what is none. */
const HARMLESS_ESCAPE = /\\(?:\/|u00(?:26|3[cde]))/gi;

/**
 * Reads the addresses of what a run has read: as they stand there, in no other form that programs read. What a model wrote in
 * disguise and somebody quotes would count as read otherwise.
 */
function readIn(material: string): Read {
  const read: Read = { written: new Set(), keys: new Set(), sites: new Map() };
  const unescaped = material.replaceAll(HARMLESS_ESCAPE, (escape) =>
    escape === "\\/" ? "/" : String.fromCharCode(Number.parseInt(escape.slice(2), 16)),
  );
  for (const text of new Set([material, unescaped])) {
    for (const { raw, at } of rawLinks(text)) {
      const keys = keysOf(raw);
      const site = siteOf(keys[0] ?? raw);
      const places = read.sites.get(site) ?? new Set();
      read.sites.set(site, places);
      if (places.size >= MAX_OF_SITE && !places.has(at)) continue;
      places.add(at);
      read.written.add(raw);
      for (const key of keys) read.keys.add(key);
    }
  }
  return read;
}
