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
}

/** What the schema of a tool lists about its arguments. */
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
/** Length from which on the first and last words of an excerpt may be cut. */
const MAX_WORDS_CHARS = 1_000;
/** The form of a parameter's name, for a tool that lists none. */
const PARAMETER = /^[A-Za-z][A-Za-z_-]{0,30}$/;

/**
 * Returns the name of an argument that tells a site more than that it is asked for; undefined if there is none. Whoever
 * wants to be told something can get their address named, for instance by asking for a summary of their page. So
 * besides the address, only words of the message's author and choices among few may go there.
 */
export function toldBeside(args: Record<string, unknown>, sayable: Sayable): string | undefined {
  return new Saying(sayable).toldIn(args);
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
    this.#said = inOneForm(said);
    this.#names = new Set(listed.names);
    this.#values = new Set(listed.values);
  }

  toldIn(args: Record<string, unknown>): string | undefined {
    return Object.entries(args).find(([name, value]) => !this.#isName(name) || this.#tells(name, value))?.[0];
  }

  #isName(name: string): boolean {
    const listed = this.#names.size === 0 ? PARAMETER.test(name) : this.#names.has(name);
    return listed || this.#isSaid(name);
  }

  #tells(key: string, value: unknown): boolean {
    if (Array.isArray(value)) return value.some((item) => this.#tells(key, item));
    if (typeof value === "object" && value !== null)
      return Object.entries(value).some(
        ([name, item]) => !(this.#names.has(name) || this.#isSaid(name)) || this.#tells(name, item),
      );
    this.#left -= 1;
    return this.#left < 0 || !this.#isFree(key, value);
  }

  #isFree(key: string, value: unknown): boolean {
    if (typeof value !== "string" && typeof value !== "number") return true;
    const text = String(value).trim();
    if (text === "" || isAmount(key, text) || this.#values.has(text) || this.#isSaid(text)) return true;
    if (this.#gone || !this.#sites.has(text)) return false;
    this.#gone = true;
    return true;
  }

  #isSaid(text: string): boolean {
    const words = inOneForm(text);
    if (words.length > MAX_WORDS_CHARS) return this.#said.includes(words);
    return standsBetween(this.#said, words, {
      before: /[\p{L}\p{N}_]/u,
      after: /^(?![\p{L}\p{N}_])/u,
    });
  }
}

function isAmount(key: string, text: string): boolean {
  if (/^(?:true|false)$/i.test(text)) return true;
  if (!/^-?\d{1,8}$/.test(text)) return false;
  const amount = Math.abs(Number(text));
  return amount <= MAX_COUNT || (amount <= MAX_AMOUNT && wordsInKey(key).some((word) => AMOUNTS.has(word)));
}

function inOneForm(text: string): string {
  return text.toLowerCase().replaceAll(/\s+/g, " ").trim();
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
