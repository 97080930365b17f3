import { urlOf } from "../../lib/web-address.ts";
import { domainOf, isPublicName } from "../../net/domain-owner.ts";
import { MIN_WRAP_COLUMN } from "./marker-lines.ts";
import { SCANNERS_PAGE } from "./scan-notes.ts";
import { isPublicProvider } from "../../net/public-providers.ts";

/** Longer names are no host names. */
const MAX_HOST_CHARS = 300;
/** The beginning of a URL, maybe attached to a word as in scripts without spaces, or of a mailto link. */
const WITH_SCHEME =
  /[a-z\d]{1,20}:\/\/|https?(?::|%3a|&#x?0{0,3}(?:3a|58);|&colon;)(?:\/|%2f|&#x?0{0,3}(?:2f|47);|&sol;){2}|(?<![\p{L}\p{N}])(?:(?:geo|magnet|spotify|intent|market|content|matrix|urn|doi|data|nostr|ipfs|ipns|did|at|lbry|bitcoin|ethereum|lightning|tg|whatsapp):\S|mailto:[^\s?]{1,300}\?)/iu;
const WWW = /^www\.[\p{L}\p{N}]/iu;
/** A URL with nothing attached but punctuation. */
const UNGLUED = /^[!-~]+(?:(?![!-~])\p{P})*$/u;

/** A text split below its last URL: `given + sure`. */
export interface SharedText {
  /**
   * The text up to the end of that URL's line: all of the text if words follow on that line, empty if there is no URL.
   */
  given: string;
  sure: string;
  /** The URL; empty where there is none. */
  page: string;
}

/**
 * Splits the text of a reply by what surely is its author's. When a program shares a page, the page's words stand above
 * or around its URL. So only lines below the last URL are surely the author's, and only if nothing follows the URL on
 * its own line, since that could continue below.
 */
export function readShared(text: string): SharedText {
  const lines = text.split("\n");
  const last = lines.findLastIndex((line) => /\S/.test(line));
  const at = lines.findLastIndex((line, index) => lastAddress(line, index === last) !== undefined);
  if (at === -1) return { given: "", sure: text, page: "" };
  const [line = "", next = ""] = lines.slice(at);
  const page = lastAddress(line, at === last) ?? "";
  const ends = line.trimEnd().endsWith(page) && UNGLUED.test(page) && !goesOn(line, next);
  const given = ends ? lines.slice(0, at + 1).join("\n") : text;
  return { given, sure: text.slice(given.length), page };
}

/** Pages of mail programs, which they write below a mail: "Sent with [Proton Mail](https://…)". */
const MAKERS_PAGE =
  /https:\/\/(?:proton\.me|kommunikationsdienste\.t-online\.de|aka\.ms|overview\.mail\.yahoo\.com|go\.microsoft\.com)(?=[/?\s>)]|$)[^\s<>()]*/g;
/** Single pages for that purpose, on sites that have others as well. */
const MAKERS_ONLY_PAGE =
  /^https?:\/\/(?:www\.zoho\.com\/mail\/?|tuta\.com\/free-email|m\.ya\.ru\/ymail|web\.de\/mailapp|canarymail\.io\/?|sparkmailapp\.com\/source\?from=signature|sprh\.mn\/\?vip=[^/]*|(?:go|mail)\.onelink\.me\/107872968\?[^/]*)$/;
const WORDS = /[^\s<>()]+/g;

/**
 * Returns whether the part cut off a mail that is no reply contains a URL, such as a shared post below a line of
 * dashes. URLs of the sender's own domain, and of makers of mail programs and virus scanners, do not count.
 */
export function hasAddressOfOthers(text: string, sender: string): boolean {
  const others = text
    .replaceAll(MAKERS_PAGE, "")
    .replaceAll(SCANNERS_PAGE, "")
    .replaceAll(WORDS, (word) => (MAKERS_ONLY_PAGE.test(word) ? "" : word));
  return holdsAddress(withoutOwnSite(others, sender));
}

/** Whether a page or a picture is of others: not of the sender's own domain, nor what a mail program or virus scanner puts there. */
export function isOfOthers(address: string, sender: string): boolean {
  const domain = domainOf(sender).toLowerCase();
  const host = urlOf(address)?.hostname ?? "";
  if (!isPublicProvider(domain) && [domain, `www.${domain}`].includes(host) && PICTURE.test(address))
    return false;
  return hasAddressOfOthers(address, sender);
}

/** On a site of their own people keep the pictures of their signatures. */
const PICTURE = /\.(?:png|jpe?g|gif|svg|webp|bmp|ico)$/i;

/** Returns a text without the home page of its sender's own domain, which many have in their signatures. */
export function withoutOwnSite(text: string, sender: string): string {
  const domain = domainOf(sender).toLowerCase();
  if (isPublicProvider(domain)) return text;
  const own = new Set([domain, `www.${domain}`]);
  return text.replaceAll(WORDS, (word) => (own.has(siteIn(word)) ? "" : word));
}

/** Returns the site whose URL a word is, without a path. */
function siteIn(word: string): string {
  return word
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/\/?[.,]{0,2}$/, "");
}

/**
 * Returns whether a text has a URL: with a scheme, or as a site's name with a path. A bare name does not count, unless
 * it ends the text, with `www.` or on a line of its own.
 */
export function holdsAddress(text: string): boolean {
  return readShared(text).page !== "";
}

/** Returns whether a mail program may have broken one line into these two; it never breaks a URL. */
function goesOn(line: string, next: string): boolean {
  const [word = ""] = next.trim().split(/\s/, 1);
  return word !== "" && Bun.stringWidth(line) + 1 + Bun.stringWidth(word) >= MIN_WRAP_COLUMN;
}

function lastAddress(line: string, is_last: boolean): string | undefined {
  const words = line.split(/\s+/).filter((word) => word !== "");
  const addresses = words.map((word, at) => {
    const ends_text = is_last && at === words.length - 1;
    return addressIn(word, ends_text && (at === 0 || WWW.test(word)));
  });
  return addresses.findLast((address) => address !== undefined);
}

/** Returns a word from where a URL begins in it. The name of a site is a URL with a path, or if it `will_do`. */
function addressIn(word: string, will_do: boolean): string | undefined {
  const scheme = word.search(WITH_SCHEME);
  if (scheme !== -1) return word.slice(scheme);
  const [place = ""] = word.slice(0, MAX_HOST_CHARS).split(/[/?#]/, 1);
  if (place.includes("@") || !(will_do || /[\p{L}\p{N}]/u.test(word.slice(place.length)))) return undefined;
  const site = place.split(/[^\p{L}\p{N}.-]+/u).find((name) => WWW.test(name) || isSite(name));
  return site === undefined ? undefined : word.slice(word.indexOf(site));
}

function isSite(name: string): boolean {
  return /\.\p{L}/u.test(name) && isPublicName(name);
}
