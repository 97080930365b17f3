import {
  isAddress,
  isHostName,
  isKeyOf32Bytes,
  isListen,
  isPublicHost,
  isNameServer,
  isNetwork,
  isOrigin,
  isRelay,
  isRelayUrl,
  isWebUrl,
} from "./forms.ts";
import { isSchedule } from "../lib/cron.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

/** One setting: its default, how its text form is parsed, and how a value is checked. */
export interface Key<T = unknown> {
  default: T;
  /** Parses a value from the environment. An invalid one stays text, so that `fault` reports it. */
  fromText: (text: string) => unknown;
  /** Returns `must be …, not …` when the value is wrong, otherwise undefined. */
  fault: (value: unknown) => string | undefined;
  /** Returns a value without the secret in it. Problems never quote such a value. */
  mask?: (value: string) => string;
  /** True for a key that must be set. */
  required?: true;
}

export interface Section {
  [name: string]: Node;
}

/** Any number of keys or sections of the same kind, under names that the operator chooses. */
export interface Named<N extends Key | Section = Key | Section> {
  each: N;
  name: Form;
  /** Returns the name that a part of an environment variable means. */
  nameOf: (part: string) => string;
}

export type Node = Key | Named | Section;

/** The plain object a section describes: `{smtp: {listen: Key<string>}}` gives `{smtp: {listen: string}}`. */
export type ValuesOf<S> =
  S extends Key<infer T>
    ? T
    : S extends Named<infer N>
      ? Record<string, ValuesOf<N>>
      : { [K in keyof S]: ValuesOf<S[K]> };

/** A requirement on a text: a test, and words that follow "must be". */
export interface Form {
  matches: (value: string) => boolean;
  words: string;
}

const MAX_TEXT_CHARS = 4096;
const MAX_LIST_ENTRIES = 1000;
const MAX_QUOTED_CHARS = 80;
const MAX_COUNT = 1_000_000_000;
const MAX_MONEY = 1_000_000;
const MAX_DELAY_SECONDS = 30 * DAY_SECONDS;

export const PATH: Form = { matches: (value) => value !== "", words: "a path" };
export const LISTEN: Form = { matches: isListen, words: 'host:port, such as "0.0.0.0:8080" or "[::]:8080"' };
export const LISTEN_OR_OFF: Form = {
  matches: (value) => value === "" || isListen(value),
  words: 'host:port, such as "0.0.0.0:2525" or "[::]:2525", or "" for no listener',
};
export const HOST: Form = { matches: isHostName, words: 'a host name, such as "mail.example.org"' };
export const ADDRESS: Form = {
  matches: isAddress,
  words: 'a mail address, such as "postmaster@example.org"',
};
export const ACCOUNT: Form = {
  matches: (value) => value === "*" || isAddress(value),
  words: 'the mail address of an account, or "*" for all of them',
};
export const COMMAND: Form = { matches: (value) => value.trim() !== "", words: "a program, by name or path" };
export const MODEL_NAME: Form = { matches: (value) => value.trim() !== "", words: "the name of a model" };
export const PRICED_MODEL: Form = {
  matches: (value) => /^[^*\s]+\*?$|^\*$/.test(value),
  words: 'the name of a model, or how such names begin and an asterisk, such as "gpt-5.4-mini" or "claude-*"',
};
export const CURRENCY: Form = {
  matches: (value) => /^[A-Z]{3}$/.test(value),
  words: 'three capital letters, such as "EUR" (ISO 4217)',
};
export const ANY_TEXT: Form = { matches: (value) => !value.includes("\0"), words: "text" };
export const NETWORK: Form = {
  matches: isNetwork,
  words: 'an IP address or a network, such as "10.0.5.0/24"',
};
export const RELAY: Form = {
  matches: isRelay,
  words:
    'an IP address or a network, "=" and the name that it writes into Authentication-Results, such as "192.0.2.7=mx.example.org"',
};
export const TARGET: Form = {
  matches: (value) => isNetwork(value) || isHostName(value),
  words: 'an IP address, a network such as "10.0.5.0/24", or a host name',
};
export const NAME_SERVER: Form = {
  matches: isNameServer,
  words: 'an IP address with an optional port, such as "127.0.0.1:5353"',
};
export const ORIGIN: Form = {
  matches: isOrigin,
  words: 'http:// or https:// and a host without a path, such as "https://mail.example.org"',
};
export const WEB_URL: Form = {
  matches: isWebUrl,
  words: "an http:// or https:// URL without a user name and password",
};
export const PUBLIC_NAME: Form = {
  matches: isPublicHost,
  words: 'a public host name, such as "mail.example.org"',
};
export const SECURE_URL: Form = {
  matches: (value) => isWebUrl(value) && /^https:/i.test(value),
  words: "an https:// URL without a user name and password",
};
export const RELAY_URL: Form = {
  matches: isRelayUrl,
  words:
    '"smtp://user:password@host:587" or "smtps://host:465"; in the user and the password, % is written %25, # %23, / %2F, ? %3F and @ %40',
};
export const SCHEDULE: Form = {
  matches: isSchedule,
  words: 'five fields as in a crontab, such as "30 3 * * *" for every day at 3:30 (UTC)',
};
export const LONG_SECRET: Form = {
  matches: (value) => value.length >= 32,
  words: "at least 32 characters, as `openssl rand -hex 32` prints them",
};
export const SQLITE_URL: Form = {
  matches: (value) => /^sqlite:./.test(value),
  words: '"sqlite:" and a path, such as "sqlite:./data/mailwright.db"',
};
export const KEY_OF_32_BYTES: Form = {
  matches: isKeyOf32Bytes,
  words: "32 random bytes in base64, as `openssl rand -base64 32` prints them",
};

/** A name that the operator gives to a section: short, and never in need of quotes in TOML. */
const SECTION_NAME: Form = {
  matches: (value) => /^[a-z](?:[-_]?[a-z0-9]){0,39}$/.test(value),
  words: 'a name of lower-case letters, digits, "-" and single "_", such as "files"',
};
const VARIABLE_NAME: Form = {
  matches: (value) => /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(value),
  words: 'the name of an environment variable, such as "API_TOKEN"',
};

export function isKey(node: Node): node is Key {
  return "fault" in node && typeof node.fault === "function";
}

export function isNamed(node: Node): node is Named {
  return "nameOf" in node && typeof node.nameOf === "function";
}

/** Returns a node for named sections; environment variables have their names in upper case. */
export function sections<S extends Section>(each: S): Named<S> {
  return { each, name: SECTION_NAME, nameOf: (part) => part.toLowerCase() };
}

/** Returns a node for environment variables of another program, which may hold secrets. */
export function variables(): Named<Key<string>> {
  return { each: secret(), name: VARIABLE_NAME, nameOf: (part) => part };
}

/** Makes a key required wherever its section is used. */
export function required<T>(key: Key<T>): Key<T> {
  return { ...key, required: true };
}

/** Returns a key for one line of text. The default is always valid, so `""` with a form means "or unset". */
export function text(fallback: string, form?: Form): Key<string> {
  return {
    default: fallback,
    fromText: (raw) => raw,
    fault: (value) => {
      const fault = textFault(value, fallback, form);
      return fault && `${fault}, not ${quoted(value)}`;
    },
  };
}

/** Returns a key for a URL, whose password is a secret. */
export function url(fallback: string, form: Form): Key<string> {
  return { ...secret(form), default: fallback, mask: maskPassword };
}

/** Returns a key for text that problems never quote. */
export function secret(form?: Form): Key<string> {
  return {
    default: "",
    fromText: (raw) => raw,
    fault: (value) => textFault(value, "", form),
    mask: (value) => (value === "" ? "" : "***"),
  };
}

export function choice<const V extends string>(values: readonly V[], fallback: NoInfer<V>): Key<V> {
  const isRight = (value: unknown) => values.some((known) => known === value);
  return { default: fallback, fromText: (raw) => raw, fault: faultUnless(isRight, oneOf(values)) };
}

export function whole(fallback: number, min: number, max: number): Key<number> {
  const isRight = (value: unknown) => Number.isSafeInteger(value) && inRange(value, min, max);
  const words = `a whole number from ${min} to ${max}`;
  return { default: fallback, fromText: numberOrText, fault: faultUnless(isRight, words) };
}

/** Returns a key for a cap or a limit: 0 or more. */
export function count(fallback: number): Key<number> {
  return whole(fallback, 0, MAX_COUNT);
}

/** Returns a key for a cap or "unlimited". */
export function capOrNone(fallback: number | "unlimited"): Key<number | "unlimited"> {
  const { fault } = count(0);
  const words = `a whole number from 0 to ${MAX_COUNT} or "unlimited"`;
  return {
    default: fallback,
    fromText: numberOrText,
    fault: faultUnless((value) => value === "unlimited" || fault(value) === undefined, words),
  };
}

/** Returns a key for a time in seconds; fractions are allowed. */
export function seconds(fallback: number, max: number, min = 0): Key<number> {
  const isRight = (value: unknown) => inRange(value, min, max);
  return {
    default: fallback,
    fromText: numberOrText,
    fault: faultUnless(isRight, `a number of seconds from ${min} to ${max}`),
  };
}

/** Returns a key for an amount of money; fractions are allowed. */
export function money<T extends number | null>(fallback: T): Key<number | T> {
  return {
    default: fallback,
    fromText: numberOrText,
    fault: faultUnless((value) => inRange(value, 0, MAX_MONEY), `an amount of money from 0 to ${MAX_MONEY}`),
  };
}

export function list(fallback: string[], form: Form): Key<string[]> {
  const isRight = (entry: unknown) => typeof entry === "string" && form.matches(entry);
  return { default: fallback, fromText: entriesOf, fault: listFault(isRight, form.words) };
}

/** Returns a key for a list of delays in seconds, with at least `at_least` entries. */
export function delays(fallback: number[], { at_least = 0 } = {}): Key<number[]> {
  const isRight = (entry: unknown) => inRange(entry, 0, MAX_DELAY_SECONDS);
  const entryFault = listFault(isRight, `a number of seconds from 0 to ${MAX_DELAY_SECONDS}`);
  const isShort = (value: unknown) => Array.isArray(value) && value.length < at_least;
  return {
    default: fallback,
    fromText: (raw) => entriesOf(raw).map(numberOrText),
    fault: (value) => (isShort(value) ? `must have at least ${at_least} entry` : entryFault(value)),
  };
}

function textFault(value: unknown, fallback: string, form?: Form): string | undefined {
  if (typeof value !== "string") return `must be ${form?.words ?? "text"}, written in quotes`;
  if (value === fallback) return undefined;
  // A line break in a value that ends up in a header or a log line would start a line of its own.
  if (/\p{Cc}/u.test(value)) return "must be one line without control characters";
  if (value.length > MAX_TEXT_CHARS) return `must be at most ${MAX_TEXT_CHARS} characters long`;
  return form === undefined || form.matches(value) ? undefined : `must be ${form.words}`;
}

function faultUnless(isRight: (value: unknown) => boolean, words: string): Key["fault"] {
  return (value) => (isRight(value) ? undefined : `must be ${words}, not ${quoted(value)}`);
}

function listFault(isRight: (entry: unknown) => boolean, words: string): Key["fault"] {
  return (value) => {
    if (!Array.isArray(value)) return `must be a list in square brackets, not ${quoted(value)}`;
    if (value.length > MAX_LIST_ENTRIES) return `must have at most ${MAX_LIST_ENTRIES} entries`;
    const wrong = value.findIndex((entry) => !isRight(entry));
    return wrong === -1 ? undefined : `entry ${wrong + 1} must be ${words}, not ${quoted(value[wrong])}`;
  };
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > MAX_QUOTED_CHARS ? `${text.slice(0, MAX_QUOTED_CHARS)}…` : text;
}

function oneOf(values: readonly string[]): string {
  const words = values.map((value) => JSON.stringify(value));
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function inRange(value: unknown, min: number, max: number): boolean {
  return typeof value === "number" && value >= min && value <= max;
}

function numberOrText(raw: string): number | string {
  return /^\d{1,15}(\.\d{1,6})?$/.test(raw.trim()) ? Number(raw) : raw;
}

function entriesOf(raw: string): string[] {
  return raw
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/**
 * Masks the password in a URL. The authority ends at the first `/`, `?` or `#`; its last `@` ends the user information.
 */
function maskPassword(value: string): string {
  return value.replace(/^([a-z][a-z0-9+.-]*:\/\/[^:/?#]*):[^/?#]*@/i, "$1:***@");
}
