import { isIPv6 } from "node:net";
import { isPublicName, registrableDomain } from "../../net/domain-owner.ts";
import { numbersThings } from "./key-words.ts";

/** What a word is given as. */
interface Given {
  key: string;
  read_only: boolean;
  /** Whether something may be sent to a name alone. */
  sends: boolean;
}

/** Before the host: `view-source:`, or a sign of its own as in `@scope/name`. A port is none. */
const PREFIX = /^(?:[a-z][\w+-]{0,30}:(?!\/|\d{1,5}(?:[/?#]|$)))?[@~]?/i;
const NUMERIC = /^(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}\.?$/i;
const NAME = /^[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*$/u;
/** Numbers below it are no address on the internet (RFC 6890: 0.0.0.0/8). */
const MIN_HOST_DIGITS = 8;
export const MAX_HOST_CHARS = 300;
/** Names in a network of one's own. */
const OWN_NAME = /(?:^|\.)(?:localhost|local|internal)$/i;
/** Endings of files that are endings of hosts as well: texts and programs, and others, of which more are those of hosts. */
const TEXT_ENDING = /\.(?:md|py|sh|rs|pl|cc|so|lock)$/i;
const OTHER_FILE_ENDING = /\.(?:zip|mov|ps|ai|app|st|ml|pm|in|bz)$/i;

/**
 * Whether a word, as programs read it, may lead somewhere although it looks like no usual address. Plainly it does not
 * where nothing but a name without a dot stands before its first slash, colon, `?` or `#` (`km/h`, `text/plain`,
 * `C:/x.txt`), a file's name or a short number (`10:30`, `2026/05`), nor as a number, date or version alone.
 */
export function isOddAddress(word: string, given: Given): boolean {
  const bare = word.replace(/(?<![.!?:])[.!?:]+$/, "").replace(PREFIX, "");
  // An address with a comment (RFC 5322 §3.2.2), or in a form that is not among those looked for in every text.
  if (isIPv6Host(bare) || /[)\]}]@.|.@[([{]|\/\/[([{]/.test(word)) return true;
  const atom = /^[^/?#:]*/.exec(bare)?.[0] ?? "";
  const tail = bare.slice(atom.length);
  if (!NUMERIC.test(atom)) return tail !== "" && isOddHost(atom.replace(/^\.+/, ""), tail);
  return /^(?:[/?#]|:\d)/.test(tail) ? isNumericHost(atom) : tail === "" && isBareNumber(atom, given);
}

function isOddHost(host: string, tail: string): boolean {
  if (host.length > MAX_HOST_CHARS || OWN_NAME.test(host)) return true;
  if (!host.includes(".")) return /^:\d{1,5}[/?#]/.test(tail) && /^[a-z][a-z0-9-]*$/i.test(host);
  // A path as scp and git write it: `example.net:x`.
  return isPublicName(host) || (!NAME.test(host) && /^(?:[/?#]|:\d)/.test(tail));
}

/**
 * Whether a recipient has a form that programs read differently: some read an address across blanks and comments, as in
 * `bob@example.org .example.net` (RFC 5322 §4.4).
 */
export function isOddRecipient(item: string): boolean {
  return item.includes("@") && !/^(?:[^<>@()]*<)?[^\s<>()@]+@[^\s<>()@]+>?$/.test(item.trim());
}

/**
 * Whether a name is taken for a file's; behind a slash (`in_path`) the ending of one is enough. `texts_only`: where no file
 * is spoken of, only the name of a text or a program is.
 */
export function isFileName(
  name: string,
  { in_path, texts_only }: { in_path: boolean; texts_only: boolean },
): boolean {
  if (name.length > MAX_HOST_CHARS) return false;
  if (!TEXT_ENDING.test(name) && (texts_only || !OTHER_FILE_ENDING.test(name))) return false;
  if (in_path || name.split(".").length === 2) return true;
  // `py` is Paraguay, directly below which nobody can register a name.
  return /\.py$/i.test(name) && registrableDomain(name)?.split(".").length === 2;
}

function isIPv6Host(word: string): boolean {
  const [, host = ""] = /^\[?([0-9a-f:.]{3,50})(?:%[^\]/]{1,30})?\]?(?:[:/?#]|$)/i.exec(word) ?? [];
  return isIPv6(host);
}

function isNumericHost(atom: string): boolean {
  return atom.includes(".") || /^0x/i.test(atom) || atom.length >= MIN_HOST_DIGITS;
}

/** Where a host belongs. */
const HOST_KEY = /host|domain|server|site|endpoint|origin|peer|^(?:ip|addr|zone|target)$/i;

/**
 * Whether a number alone may be a host. A reading tool tells nobody anything by it, unless it gets more and a host belongs
 * there; a writing tool could send there what it is given.
 */
function isBareNumber(atom: string, { key, read_only, sends }: Given): boolean {
  if (read_only) return sends && HOST_KEY.test(key) && isNumericHost(atom);
  if (/0x/i.test(atom)) return atom.length > MIN_HOST_DIGITS;
  if (/^\d+\.\d+$/.test(atom) || /^(?:\d{1,4}\.){1,2}\d{1,4}\.?$/.test(atom)) return false;
  // Days and Unix seconds are known below any key.
  return (
    isNumericHost(atom) && !numbersThings(key) && !/^(?:(?:19|20)\d{6}|1[5-9]\d{8}(?:\d{3})?)$/.test(atom)
  );
}
