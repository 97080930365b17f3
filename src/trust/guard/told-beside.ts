import { siteOf } from "../shown/find-link.ts";
import { urlOf } from "../shown/link-keys.ts";
import { wordsInKey } from "./prose.ts";
import { standsBetween } from "./stands-between.ts";
import { wordSet } from "./words.ts";

/** What a call may tell a site besides its address. */
export interface Sayable {
  /** The addresses in the arguments, all of them named by the author. */
  sites: ReadonlySet<string>;
  /** The words of the mail or call itself: they reveal nothing else that the run knows. */
  said: string;
  listed: Listed;
  /** What earlier calls may have told. */
  told: Told[];
}

/** The values of one call by their names, as text; an address that the call goes to by its site. */
export type Told = (readonly [name: string, value: string])[];

/** What a tool lists of its arguments. */
export interface Listed {
  /** The names of the arguments and of their members. */
  names: string[];
  /** Values that it allows (`enum`, `const`), suggests or defaults to. */
  values: string[];
}

/** Limit of values in one call: many small ones could spell a text. */
const MAX_VALUES = 20;
/** Numbers up to this may be passed, such as a number of results. */
const MAX_COUNT = 1_000;
/** Words in parameter names for amounts (length, offset, timeout): no site is told them. */
const AMOUNTS = wordSet(
  "max min limit length size chars characters tokens bytes index offset start end from timeout wait delay ms seconds count width height depth",
);
const MAX_AMOUNT = 10_000_000;
/** No address is longer. */
const MAX_PLACE_CHARS = 4_000;
/** How much all calls of a run may say by such values: less than a short sentence. */
const MAX_BITS = 160;
/** What one of those costs that are no numbers: a word of the mail, or one that the tool lists. */
const WORD_BITS = 12;
/** What a letter costs in a name that the tool does not list. */
const LETTER_BITS = 5;
/** Characters from which on the first and last words of a text need not be whole. */
const MAX_WORDS_CHARS = 1_000;
/** The form of a parameter's name, for a tool that lists none. */
const PARAMETER = /^[A-Za-z][A-Za-z_-]{0,30}$/;

/**
 * Returns the name of an argument that tells a site more than that it is asked for; undefined if there is none. Whoever
 * wants to be told something can get their address named, for instance by asking for a summary of their page. So
 * besides the address, only words of the message's author and choices among few may go there.
 */
export function toldBeside(args: Record<string, unknown>, sayable: Sayable): string | undefined {
  const { told, listed, sites } = sayable;
  const tells = new Saying(sayable).toldIn(args);
  if (tells !== undefined) return tells;
  const values = valuesIn(args, listed, sites);
  const more = values.find(([name]) => name !== SHAPE && !isSite(name));
  // To ask for a page once more says nothing, where it is the only one of its site.
  const counted = more === undefined ? [...told, values].map(sitesIn) : [...told, values];
  const bits = bitsOf(counted);
  if (bits <= MAX_BITS || bits === bitsOf(counted.slice(0, -1))) return undefined;
  return more?.[0] ?? Object.keys(args)[0];
}

function sitesIn(values: Told): Told {
  return values.filter(([name]) => isSite(name));
}

function isSite(name: string): boolean {
  return name.startsWith(SITE);
}

/**
 * The values that a call holds, as far as one may hold any, each just as it is sent. Names that the tool does not list are
 * values as well, and so is which members there are and in what order.
 */
export function valuesIn(args: Record<string, unknown>, { names }: Listed, sites: ReadonlySet<string>): Told {
  const found: [string, string][] = [[SHAPE, shapeOf(args)]];
  const left: [string, unknown][] = Object.entries(args);
  for (let part = left.pop(); part !== undefined && found.length <= MAX_VALUES; part = left.pop()) {
    const [name, value] = part;
    if (!names.includes(name)) found.push(["", name]);
    if (typeof value !== "object" || value === null)
      found.push(
        typeof value === "string" && sites.has(value) ? [siteName(value), value] : [name, asSent(value)],
      );
    else if (Array.isArray(value))
      left.push(...value.slice(0, MAX_VALUES).map((item): [string, unknown] => [name, item]));
    else left.push(...Object.entries(value).slice(0, MAX_VALUES));
  }
  return found;
}

const SHAPE = " members";
const SITE = "//";

function shapeOf(args: Record<string, unknown>): string {
  return JSON.stringify(args, (_, value: unknown) =>
    typeof value === "object" && value !== null ? value : 0,
  ).slice(0, MAX_PLACE_CHARS);
}

/** A value as text; `12` and `"12"` are not the same one. */
function asSent(value: unknown): string {
  if (typeof value !== "string") return `${NOT_TEXT}${String(value)}`;
  return value.length > MAX_PLACE_CHARS ? `${value.slice(0, MAX_PLACE_CHARS)} ${value.length}` : value;
}

const NOT_TEXT = "\0";

function siteName(address: string): string {
  return SITE + siteOf(address);
}

/** A page, whichever of the ways to name it is used: they lead to the same, and its site can tell them apart. */
function pageOf(address: string): string {
  const url = urlOf(/^[a-z]+:/i.test(address) ? address : `https://${address}`);
  if (url === null) return address;
  return `${url.host.replace(/^www\./, "")}${url.pathname.replace(/\/$/, "")}${url.search}`;
}

/** How much a reader can tell by the values of some calls. One that is given again says which of those it is. */
function bitsOf(calls: Told[]): number {
  const seen = new Map<string, Set<string>>();
  let bits = 0;
  for (const [name, value] of calls.flat()) {
    const before = seen.get(name) ?? new Set();
    bits += before.has(value) ? Math.log2(before.size) : bitsOfNew(name, value, before);
    seen.set(name, before.add(value));
  }
  return bits;
}

function bitsOfNew(name: string, given: string, before: ReadonlySet<string>): number {
  if (isSite(name)) {
    // Each page is named by the author; another way to name one that was asked for says something.
    const page = pageOf(given);
    return [...before].some((address) => pageOf(address) === page) ? Math.log2(before.size + 1) : 0;
  }
  const value = given.replace(NOT_TEXT, "");
  if (name === "") return value.length * LETTER_BITS;
  if (/^(?:true|false|null|)$/.test(value)) return 1;
  if (/^-?\d{1,8}$/.test(value)) return Math.log2(Math.abs(Number(value)) + 2);
  return WORD_BITS;
}

class Saying {
  readonly #sites: ReadonlySet<string>;
  readonly #said: string;
  readonly #names: ReadonlySet<string>;
  readonly #values: ReadonlySet<string>;
  #left = MAX_VALUES;
  /**
   * Whether a site was already contacted in this call. The choice among addresses carries information too, so one is
   * free, and any other has to be in the author's words.
   */
  #gone = false;

  constructor({ sites, said, listed }: Sayable) {
    this.#sites = sites;
    this.#said = onOneLine(said);
    this.#names = new Set(listed.names);
    this.#values = new Set(listed.values);
  }

  toldIn(args: Record<string, unknown>): string | undefined {
    return Object.entries(args).find(([name, value]) => !this.#isName(name) || this.#tells(name, value))?.[0];
  }

  #isName(name: string): boolean {
    return this.#names.size === 0 ? PARAMETER.test(name) : this.#names.has(name);
  }

  #tells(key: string, value: unknown): boolean {
    if (Array.isArray(value)) return value.some((item) => this.#tells(key, item));
    if (typeof value === "object" && value !== null)
      return Object.entries(value).some(([name, item]) => !this.#names.has(name) || this.#tells(name, item));
    this.#left -= 1;
    return this.#left < 0 || !this.#isFree(key, value);
  }

  #isFree(key: string, value: unknown): boolean {
    if (typeof value !== "string" && typeof value !== "number") return true;
    const text = String(value);
    if (text === "" || isAmount(key, text) || this.#values.has(text) || this.#isSaid(text)) return true;
    if (this.#gone || !this.#sites.has(text)) return false;
    this.#gone = true;
    return true;
  }

  /** Letter for letter: by the capitals and blanks of a text of the mail somebody could be told another one. */
  #isSaid(text: string): boolean {
    if (text.length > MAX_WORDS_CHARS) return this.#said.includes(text);
    return standsBetween(this.#said, text, {
      before: /[\p{L}\p{N}_]/u,
      after: /^(?![\p{L}\p{N}_])/u,
    });
  }
}

function isAmount(key: string, text: string): boolean {
  if (/^(?:true|false)$/.test(text)) return true;
  if (!/^-?\d{1,8}$/.test(text) || String(Number(text)) !== text) return false;
  const amount = Math.abs(Number(text));
  return amount <= MAX_COUNT || (amount <= MAX_AMOUNT && wordsInKey(key).some((word) => AMOUNTS.has(word)));
}

/** A text with a blank for each break of its lines: programs break them anywhere. */
function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

const VALUES = new Set(["enum", "const", "default", "examples"]);

const known = new WeakMap<object, Listed>();

/** Returns the names and values that a schema lists, at any depth. */
export function listedIn(schema: Record<string, unknown>): Listed {
  let listed = known.get(schema);
  if (listed === undefined) known.set(schema, (listed = read(schema)));
  return listed;
}

function read(schema: Record<string, unknown>): Listed {
  const names: string[] = [];
  const values: string[] = [];
  const left: unknown[] = [schema];
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    if (typeof part !== "object" || part === null) continue;
    for (const [key, value] of Object.entries(part)) {
      if (VALUES.has(key)) values.push(...[value].flat().map(String));
      else if (key === "properties" && typeof value === "object" && value !== null)
        names.push(...Object.keys(value));
      if (typeof value === "object" && value !== null) left.push(value);
    }
  }
  return { names, values };
}
