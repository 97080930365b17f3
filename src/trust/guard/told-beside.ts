import { siteOf } from "../shown/find-link.ts";
import { urlOf } from "../../lib/web-address.ts";
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
  /** The tool that is called, with its target. */
  tool: string;
  /** What earlier calls may have told. */
  told: Told[];
  /** What those of them may have told that came after the answer of another tool; null where none has answered. */
  since: Told[] | null;
}

/** What a call may tell: its values by their names, as text, and how many bits one tells that was not told before. An address that it goes to stands below its site. */
export type Told = (readonly [name: string, value: string, bits: number])[];

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
/** The same once another tool has answered: less than the code of six digits that it may have found in a mailbox. */
const MAX_BITS_SINCE = 10;
/** What is told by asking once more: how often, and when. */
const REQUEST_BITS = 3;
/** What is told by which tool asks, and by each member that a call has beside another. */
const TOOL_BITS = 3;
const MEMBER_BITS = 4;
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
  const { told, since } = sayable;
  const tells = new Saying(sayable).toldIn(args);
  if (tells !== undefined) return tells;
  const values = valuesIn(args, sayable);
  if (isFirst(told, values)) return undefined;
  if (addsTo(told, values) <= MAX_BITS && (since === null || addsTo(since, values) <= MAX_BITS_SINCE))
    return undefined;
  return values.find(([name]) => !OWN_NAMES.has(name) && !isSite(name))?.[0] ?? Object.keys(args)[0];
}

function isSite(name: string): boolean {
  return name.startsWith(SITE);
}

/** Whether a call holds nothing but addresses, in no form that says more, and is the first one to its site. */
function isFirst(told: Told[], values: Told): boolean {
  const sites = new Set(values.flatMap(([name]) => (isSite(name) ? [name] : [])));
  return (
    values.every(([name, , bits]) => (name === SHAPE ? bits === 0 : OWN_NAMES.has(name) || isSite(name))) &&
    !told.flat().some(([name]) => sites.has(name))
  );
}

/** The bits that all calls tell with a further one; none if that one tells nothing more. */
function addsTo(told: Told[], values: Told): number {
  const bits = bitsOf([...told, values]);
  return bits === bitsOf(told) ? 0 : bits;
}

/**
 * The values that a call holds, as far as one may hold any, each just as it is sent. Names that the tool does not list are
 * values as well, and so are which tool it is, which members there are and in what order, and that the site is asked at all.
 */
export function valuesIn(
  args: Record<string, unknown>,
  { listed, sites, tool }: Pick<Sayable, "listed" | "sites" | "tool">,
): Told {
  const shape = shapeOf(args);
  const found: Told[number][] = [
    [TOOL, tool, TOOL_BITS],
    [SHAPE, shape, Math.max(0, membersIn(shape) - 1) * MEMBER_BITS],
  ];
  const left: [string, unknown][] = Object.entries(args);
  for (let part = left.pop(); part !== undefined && found.length <= MAX_VALUES; part = left.pop()) {
    const [name, value] = part;
    if (!listed.names.includes(name)) found.push(["", name, name.length * LETTER_BITS]);
    if (Array.isArray(value))
      left.push(...value.slice(0, MAX_VALUES).map((item): [string, unknown] => [name, item]));
    else if (typeof value === "object" && value !== null)
      left.push(...Object.entries(value).slice(0, MAX_VALUES));
    else if (typeof value === "string" && sites.has(value))
      found.push([siteName(value), value, 0], [REQUEST, siteName(value), 0]);
    else found.push([name, asSent(value), bitsOfValue(value, listed)]);
  }
  return found;
}

const TOOL = " tool";
const REQUEST = " request";
const SHAPE = " members";
const SITE = "//";
const OWN_NAMES = new Set([TOOL, REQUEST, SHAPE]);

function shapeOf(args: Record<string, unknown>): string {
  return JSON.stringify(args, (_, value: unknown) =>
    typeof value === "object" && value !== null ? value : 0,
  ).slice(0, MAX_PLACE_CHARS);
}

/** The members of a shape. Lists and objects without a name, and empty ones, tell as much: the first of all has none. */
function membersIn(shape: string): number {
  const unnamed = shape.match(/(?<![:])[[{]|(?<=:)(?:\[\]|\{\})/g)?.length ?? 0;
  return shape.split('":').length - 1 + unnamed - 1;
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
  for (const [name, value, anew] of calls.flat()) {
    const before = seen.get(name) ?? new Set();
    if (name === REQUEST) bits += before.has(value) ? REQUEST_BITS : 0;
    else if (before.has(value)) bits += Math.log2(before.size);
    else bits += isSite(name) ? bitsOfAddress(value, before) : anew;
    seen.set(name, before.add(value));
  }
  return bits;
}

/** Each page is named by the author; another way to name one that was asked for says something. */
function bitsOfAddress(given: string, before: ReadonlySet<string>): number {
  const page = pageOf(given);
  return [...before].some((address) => pageOf(address) === page) ? Math.log2(before.size + 1) : 0;
}

function bitsOfValue(value: unknown, listed: Listed): number {
  if (typeof value === "boolean" || value === null || value === "") return 1;
  const text = asSent(value).replace(NOT_TEXT, "");
  if (/^-?\d{1,8}$/.test(text)) return Math.log2(Math.abs(Number(text)) + 2);
  return listed.values.includes(text) ? Math.min(WORD_BITS, Math.log2(listed.values.length + 1)) : WORD_BITS;
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
    this.#left -= 1;
    if (this.#left < 0) return true;
    if (Array.isArray(value)) return value.some((item) => this.#tells(key, item));
    if (typeof value === "object" && value !== null)
      return Object.entries(value).some(([name, item]) => !this.#names.has(name) || this.#tells(name, item));
    return !this.#isFree(key, value);
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
