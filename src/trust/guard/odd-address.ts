import { isIPv6 } from "node:net";
import { isPublicName, registrableDomain } from "../../net/domain-owner.ts";
import { numbersThings } from "./key-words.ts";

/** How a word is passed to a tool. */
interface Given {
  key: string;
  read_only: boolean;
  /** Whether the tool may send something to a bare name. */
  sends: boolean;
}

/** Prefixes of a host, such as `view-source:`, or the sign in `@scope/name`; a port is not one. */
const PREFIX = /^(?:[a-z][\w+-]{0,30}:(?!\/|\d{1,5}(?:[/?#]|$)))?[@~]?/i;
const NUMERIC = /^(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}\.?$/i;
const NAME = /^[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*$/u;
/** Smaller numbers are no address on the internet (RFC 6890: 0.0.0.0/8). */
const MIN_HOST_DIGITS = 8;
export const MAX_HOST_CHARS = 300;
/** Names that resolve in a private network. */
const OWN_NAME = /(?:^|\.)(?:localhost|local|internal)$/i;
/**
 * File extensions that are top-level domains as well: texts and programs, then others, which more often belong to
 * hosts.
 */
const TEXT_ENDING = /\.(?:md|py|sh|rs|pl|cc|so|lock)$/i;
const OTHER_FILE_ENDING = /\.(?:zip|mov|ps|ai|app|st|ml|pm|in|bz)$/i;

/**
 * Returns whether a word may lead somewhere although it looks like no usual address. It does not if it has only a name
 * without a dot before its first slash, colon, `?` or `#` (`km/h`, `text/plain`, `C:/x.txt`), a file name or a short
 * number there (`10:30`, `2026/05`), or if it is just a number, date or version.
 */
export function isOddAddress(word: string, given: Given): boolean {
  const bare = word.replace(/(?<![.!?:])[.!?:]+$/, "").replace(PREFIX, "");
  // A mail address with a comment (RFC 5322 §3.2.2), or in a form that the general search does not cover.
  if (isIPv6Host(bare) || /[)\]}]@.|.@[([{]|\/\/[([{]/.test(word)) return true;
  const atom = /^[^/?#:]*/.exec(bare)?.[0] ?? "";
  const tail = bare.slice(atom.length);
  if (!NUMERIC.test(atom)) return tail !== "" && isOddHost(atom.replace(/^\.+/, ""), tail);
  return /^(?:[/?#]|:\d)/.test(tail) ? isNumericHost(atom) : tail === "" && isBareNumber(atom, given);
}

function isOddHost(host: string, tail: string): boolean {
  if (host.length > MAX_HOST_CHARS || OWN_NAME.test(host)) return true;
  if (!host.includes(".")) return /^:\d{1,5}[/?#]/.test(tail) && /^[a-z][a-z0-9-]*$/i.test(host);
  // The syntax of scp and git: `example.net:x`.
  return isPublicName(host) || (!NAME.test(host) && /^(?:[/?#]|:\d)/.test(tail));
}

/**
 * Returns whether programs may read a recipient differently: some join an address across spaces and comments, as in
 * `bob@example.org .example.net` (RFC 5322 §4.4).
 */
export function isOddRecipient(item: string): boolean {
  return item.includes("@") && !/^(?:[^<>@()]*<)?[^\s<>()@]+@[^\s<>()@]+>?$/.test(item.trim());
}

/**
 * Returns whether a name counts as a file name. Behind a slash (`in_path`) a file extension is enough. With
 * `texts_only`, where no file is expected, only names of texts and programs count.
 */
export function isFileName(
  name: string,
  { in_path, texts_only }: { in_path: boolean; texts_only: boolean },
): boolean {
  if (name.length > MAX_HOST_CHARS) return false;
  if (!TEXT_ENDING.test(name) && (texts_only || !OTHER_FILE_ENDING.test(name))) return false;
  if (in_path || name.split(".").length === 2) return true;
  // `py` is Paraguay's domain, and nobody can register a name directly below it.
  return /\.py$/i.test(name) && registrableDomain(name)?.split(".").length === 2;
}

function isIPv6Host(word: string): boolean {
  const [, host = ""] = /^\[?([0-9a-f:.]{3,})(?:%[^\]/]+)?\]?(?:[:/?#]|$)/i.exec(word) ?? [];
  return isIPv6(host);
}

function isNumericHost(atom: string): boolean {
  return atom.includes(".") || /^0x/i.test(atom) || atom.length >= MIN_HOST_DIGITS;
}

/** Parameter names for a host, and those among them for something else about it. */
const HOST_KEY =
  /host|domain|server|site|endpoint|origin|peer|address|remote|gateway|destination|proxy|upstream|^ip_?addr|^(?:ip|addr|zone|target|node|base)$/i;
const OF_A_HOST = /version|port$/i;

/**
 * Returns whether a bare number may be a host. A reading tool reveals nothing to it, unless it gets more arguments and
 * the parameter is for a host; a writing tool could send its arguments there.
 */
function isBareNumber(atom: string, { key, read_only, sends }: Given): boolean {
  const is_host = HOST_KEY.test(key) && !OF_A_HOST.test(key);
  if (read_only) return sends && is_host && isNumericHost(atom);
  if (is_host) return isNumericHost(atom);
  if (/0x/i.test(atom)) return atom.length > MIN_HOST_DIGITS;
  if (/^\d+\.\d+$/.test(atom) || /^(?:\d{1,4}\.){1,2}\d{1,4}\.?$/.test(atom)) return false;
  // Dates and Unix times are recognized in any parameter.
  return (
    isNumericHost(atom) && !numbersThings(key) && !/^(?:(?:19|20)\d{6}|1[5-9]\d{8}(?:\d{3})?)$/.test(atom)
  );
}
