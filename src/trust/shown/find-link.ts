import { MAX_URL_CHARS } from "../../lib/web-address.ts";
import { parse } from "tldts";

/** The longest address that every browser and mail program takes. */
export const MAX_LINK_CHARS = MAX_URL_CHARS;

/** A part of a text that a mail program may turn into a link. */
export interface FoundLink {
  start: number;
  end: number;
}

const LABEL = String.raw`[\p{L}\p{M}\p{N}_\-]`;
const HOST = String.raw`${LABEL}+(?:\.${LABEL}+)+`;
const LOCAL = String.raw`[\p{L}\p{M}\p{N}.!#$%&'*+\/=?^_\x60\{\|\}~\-]`;
/** The rest of a URL up to a character that no URL has. An IPv6 address, which has brackets, may come first. */
const REST = String.raw`(?:(?:[^\s\/\\<>"@\[\]]{0,100}@)?\[[0-9a-f:.%]{2,60}\])?[^\s<>"\x60\|\{\}\^\[\]]*`;
const SCHEME_START = String.raw`(?<![a-z0-9+.\-])`;

/** Forms that are always a link, then those that are one only if such a host may exist. */
const LINK = new RegExp(
  [
    String.raw`(?:https?|ftps?|wss?|file):(?=[^\s<>"])${REST}`,
    String.raw`${SCHEME_START}[a-z][a-z0-9+.\-]{0,30}:[\/\\]{2}${REST}`,
    String.raw`${SCHEME_START}(?:mailto|tel|sms|smsto|callto|sips?|xmpp|skype|facetime|magnet|javascript|vbscript|search-ms|ms-[a-z\-]{2,20}):(?=[^\s<>"])${REST}`,
    String.raw`${SCHEME_START}data:(?:[a-z]{1,20}\/[a-z0-9.+\-]{1,60})?[;,]${REST}`,
    String.raw`(?<!${LABEL})www\d{0,3}\.(?=[^\s<>"])${REST}`,
    String.raw`(?<!${LOCAL})${LOCAL}+@${HOST}`,
    String.raw`(?<bare>(?<!${LABEL})${HOST})`,
  ].join("|"),
  "giu",
);

/** The rest of a URL behind its host. Matched only behind a possible host: other text is searched for links itself. */
const MORE = new RegExp(String.raw`(?::\d{1,5})?(?:[\/\\?#]${REST})?`, "iuy");
/** A name that ends like the scheme of a URL. */
const WEB_END = /(?:https?|ftps?|wss?|file)$/i;
const WEB_REST = new RegExp(String.raw`:(?=[^\s<>"])${REST}`, "iuy");

/** Returns the first link at or after `from`, recognized as generously as the most eager mail program would. */
export function findLink(text: string, from: number): FoundLink | undefined {
  // Text before `from` has been handled: it is no part of a later link.
  const rest = text.slice(from);
  LINK.lastIndex = 0;
  for (let match = LINK.exec(rest); match; match = LINK.exec(rest)) {
    const { bare } = match.groups ?? {};
    const { index } = match;
    const found = { start: from + index, end: from + index + match[0].length };
    if (bare === undefined) return found;
    // Behind a dot, the match is the end of a longer name; `x.` stands for that name's beginning.
    const hosts = rest[index - 1] === "." ? [bare, `x.${bare}`] : [bare];
    const more = hosts.some(mayBeHost) ? moreAt(rest, index + bare.length) : "";
    if (hosts.some((host) => isPlace(host, more))) return { ...found, end: found.end + more.length };
    // Some programs take an underscore as part of a host, others as its end.
    const [head = bare] = bare.split("._", 1);
    if (head !== bare && isPlace(head, "")) return { start: found.start, end: found.start + head.length };
    const end = index + bare.length;
    WEB_REST.lastIndex = end;
    const web = WEB_END.test(bare) ? WEB_REST.exec(rest) : null;
    // Takes the whole word: without its end it could be the name of another host.
    if (web) return { start: from + index, end: from + end + web[0].length };
    // The text behind the match may hold a link.
    LINK.lastIndex = end;
  }
  return undefined;
}

/** Returns the registrable domain of a URL, or its host where that has none. */
export function siteOf(url: string): string {
  const { domain, hostname } = parse(url);
  return domain ?? hostname ?? url;
}

function moreAt(text: string, at: number): string {
  MORE.lastIndex = at;
  return MORE.exec(text)?.[0] ?? "";
}

function mayBeHost(host: string): boolean {
  const { isIp, isIcann } = parse(host);
  return isIp === true || isIcann === true;
}

/**
 * Returns whether a host, with `more` behind it, is a link. A bare domain (`booking.com`) is not: it carries no message
 * to its owner, and file names look like it.
 */
function isPlace(host: string, more: string): boolean {
  const { isIp, isIcann, subdomain } = parse(host);
  if (isIp === true) return more !== "" && !/^\/\d{1,2}$/.test(more);
  return isIcann === true && (more !== "" || (subdomain !== "" && subdomain !== "www"));
}
