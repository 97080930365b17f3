import { domainToUnicode } from "node:url";
import { registrableDomain } from "../../net/domain-owner.ts";
import { urlOf } from "../../lib/web-address.ts";
import { isPlain, keysOf, rawLinks } from "../shown/link-keys.ts";
import { isInsideAddress, readKeepingAddresses } from "./inside-address.ts";
import { isFileName } from "./odd-address.ts";
import { type DigitRun, digitRunsIn } from "./phones.ts";
import { standsBetween } from "./stands-between.ts";
import { wordSet } from "./words.ts";

/** A text that names addresses, as it stands and as programs read it. */
export interface Known {
  text: string;
  /** As long as the text. */
  lower: string;
  /** Its numbers. */
  runs: DigitRun[];
  /** Its web addresses, each in the one form of all that lead to the same. */
  pages: () => ReadonlySet<string>;
}

/** Texts that are remembered: a run asks about its trusted one, and about its mail, again and again. */
const MAX_KNOWN = 3;
const known = new Map<string, Known>();

export function knownIn(trusted_text: string): Known {
  const found = known.get(trusted_text) ?? readAnew(trusted_text);
  known.delete(trusted_text);
  known.set(trusted_text, found);
  for (const text of known.keys()) if (known.size > MAX_KNOWN) known.delete(text);
  return found;
}

function readAnew(trusted_text: string): Known {
  const text = `${trusted_text}\n${readKeepingAddresses(trusted_text)}`;
  let pages: ReadonlySet<string> | undefined;
  return {
    text,
    lower: lowered(text),
    runs: digitRunsIn(trusted_text),
    pages: () => (pages ??= pagesIn(text)),
  };
}

function pagesIn(text: string): ReadonlySet<string> {
  const pages = new Set<string>();
  for (const { raw, at } of rawLinks(text)) {
    if (isInsideAddress(text, at)) continue;
    for (const key of keysOf(raw)) {
      pages.add(key);
      // A browser keeps what stands behind it to itself, and asks an old address of the web for its secure page first.
      const [page = key] = key.split("#", 1);
      pages.add(page).add(page.replace(/^http:/, "https:"));
    }
  }
  return pages;
}

/** In small letters, but for those that take more characters than their capital ones: both texts stay as long. */
function lowered(text: string): string {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  return text.replaceAll(/\p{Lu}/gu, (char) => {
    const small = char.toLowerCase();
    return small.length === char.length ? small : char;
  });
}

/** What stands before the path: hosts and mail addresses are the same in capital letters, paths are not. */
const BEFORE_PATH = /^(?:[a-z][a-z0-9+.-]{0,30}:)?[/\\]*[^/\\?#]*/i;

/**
 * Whether an address in the arguments of a call is one that a text names: as it stands there, or in the form that a browser gives
 * it. It has to be all of it, as whoever keeps the site reads every mark that is added, and every other way of writing it.
 */
export function namesAddress(named: Known, place: string, { read_only }: { read_only: boolean }): boolean {
  return standsIn(named, place) || namesPage(named, place, read_only);
}

/** As a whole: the beginning of a longer address is another one. */
function standsIn({ text, lower }: Known, wanted: string): boolean {
  const path = BEFORE_PATH.exec(wanted)?.[0].length ?? 0;
  const head = wanted.slice(0, path);
  // A name server is told capital letters as they are, and there are as many ways to set them as a word has letters.
  const plain = /^(?:mailto:)?[^/\\:]*@/i.test(head) || head.slice(1) === head.slice(1).toLowerCase();
  return standsBetween(lower, lowered(wanted), {
    before: /[\w@.%+-]/,
    // What is encoded may end it, as a blank does where it is looked for in the arguments.
    after: /^\/?[.,;:!?)\]}>'"*_]*(?![^\s\uE000])/,
    accepts: (at) =>
      text.startsWith(plain ? wanted.slice(path) : wanted, plain ? at + path : at) &&
      !isInsideAddress(text, at),
  });
}

function namesPage(named: Known, wanted: string, read_only: boolean): boolean {
  const address = /^https?:/i.test(wanted) ? wanted : `https://${wanted}`;
  const url = urlOf(address);
  if (url === null || !WEB_SCHEMES.has(url.protocol) || !isPlain(address)) return false;
  const keys = hostsOf(url).map((host) => {
    const key = keysOf(url.href.replace(url.host, host))[0] ?? "";
    // Nothing that is only read has to be kept from those on the way more than its author did.
    return read_only ? key.replace(/^http:/, "https:") : key;
  });
  if (keys.some((key) => named.pages().has(key))) return true;
  const is_site = url.href === `${url.protocol}//${url.hostname}/`;
  return is_site && hostsOf(url).some((host) => namesSite(named, host));
}

const WEB_SCHEMES = wordSet("https: http:");

/** A site by its name alone, as people write it: `booking.com`. */
function namesSite(named: Known, host: string): boolean {
  if (isFileName(host, { in_path: false, texts_only: false })) return false;
  return standsIn(named, host) || standsIn(named, domainToUnicode(host));
}

/** The host of an address, and the one with or without `www.` that whoever has the domain has as well. */
function hostsOf({ host, hostname }: URL): string[] {
  const bare = host.replace(/^www\./, "");
  if (registrableDomain(hostname) !== bare.replace(/:\d+$/, "")) return [host];
  return [host, bare === host ? `www.${host}` : bare];
}
