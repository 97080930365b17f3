import { domainOf, isPublicName } from "../../net/domain-owner.ts";
import { MIN_WRAP_COLUMN } from "./marker-lines.ts";
import { SCANNERS_PAGE } from "./scan-notes.ts";
import { isPublicProvider } from "../../net/public-providers.ts";

/** A longer name is none. */
const MAX_HOST_CHARS = 300;
/** The beginning of a web address, also glued to a word as in scripts without spaces, or of a link that writes a mail. */
const WITH_SCHEME =
  /[a-z\d]{1,20}:\/\/|https?(?::|%3a|&#x?0{0,3}(?:3a|58);|&colon;)(?:\/|%2f|&#x?0{0,3}(?:2f|47);|&sol;){2}|(?<![\p{L}\p{N}])(?:(?:geo|magnet|spotify|intent|market|content|matrix|urn|doi|data|nostr|ipfs|ipns|did|at|lbry|bitcoin|ethereum|lightning|tg|whatsapp):\S|mailto:[^\s?]{1,300}\?)/iu;
const WWW = /^www\.[\p{L}\p{N}]/iu;
/** An address to which nothing is glued but the end of a sentence or a closing bracket. */
const UNGLUED = /^[!-~]+(?:(?![!-~])\p{P})*$/u;

/** A text, parted below its last web address: `given + sure`. */
export interface SharedText {
  /** To the end of that address's line; all of it where words follow on that line, and nothing where there is none. */
  given: string;
  sure: string;
  /** The address; empty where there is none. */
  page: string;
}

/**
 * Parts the text of a mail that answers by what of it is surely its author's. Words of others that stand there with the
 * address of their page stand above or around it. Only the lines below the last address are surely not of these, and only
 * where nothing follows on its own line, as that could go on below.
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

/** Pages of makers of mail programs, which those programs write below a mail: "Sent with [Proton Mail](https://…)". */
const MAKERS_PAGE =
  /https:\/\/(?:proton\.me|kommunikationsdienste\.t-online\.de|aka\.ms|overview\.mail\.yahoo\.com|go\.microsoft\.com)(?=[/?\s>)]|$)[^\s<>()]*/g;
/** Single pages for that, on sites that have others as well. */
const MAKERS_ONLY_PAGE =
  /^https?:\/\/(?:www\.zoho\.com\/mail\/?|tuta\.com\/free-email|m\.ya\.ru\/ymail|web\.de\/mailapp|canarymail\.io\/?|sparkmailapp\.com\/source\?from=signature|sprh\.mn\/\?vip=[^/]*|(?:go|mail)\.onelink\.me\/107872968\?[^/]*)$/;
const WORDS = /[^\s<>()]+/g;

/**
 * Whether there is a web address in what was cut off a mail that answers none, such as a post in which a line of dashes
 * stands above it. The site of the sender's own domain is no page of others, nor are those of the makers of mail programs and virus scanners.
 */
export function hasAddressOfOthers(text: string, sender: string): boolean {
  const others = text
    .replaceAll(MAKERS_PAGE, "")
    .replaceAll(SCANNERS_PAGE, "")
    .replaceAll(WORDS, (word) => (MAKERS_ONLY_PAGE.test(word) ? "" : word));
  return holdsAddress(withoutOwnSite(others, sender));
}

/** Returns a text without the home page of its sender's own domain, which many have in their signatures. */
export function withoutOwnSite(text: string, sender: string): string {
  const domain = domainOf(sender).toLowerCase();
  if (isPublicProvider(domain)) return text;
  const own = new Set([domain, `www.${domain}`]);
  return text.replaceAll(WORDS, (word) => (own.has(siteIn(word)) ? "" : word));
}

/** The site that a word is the address of, without a path. */
function siteIn(word: string): string {
  return word
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/\/?[.,]{0,2}$/, "");
}

/**
 * Whether a text has a web address: with a scheme, or with a path behind the name of a site. That alone is none, unless
 * the text ends in it, with `www.` or on a line of its own.
 */
export function holdsAddress(text: string): boolean {
  return readShared(text).page !== "";
}

/** Whether a mail program may have broken one line into these two; it leaves an address whole, however long that is. */
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

/** From where an address begins in a word to its end. The name of a site is one with a path, or where it `will_do`. */
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
