import { urlOf } from "../../lib/web-address.ts";
import { findLink, type FoundLink, MAX_LINK_CHARS } from "./find-link.ts";

/** Marks that may follow an address without being part of it. */
export const CLOSERS = /[)'*,;.!?:~_\\]{1,8}$/;
export const NO_SPACES = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]/u;
const PREFIX = new RegExp(`^(?:[\`'{|}/*~_]{1,8}|${NO_SPACES.source}+)`, "u");
/** What stands for one character in a text of JSON (RFC 8259 §7), without the backslash at its beginning. */
const ESCAPE = '(?:[bfnrt"]|u[0-9a-f]{4})';
const ESCAPE_INSIDE = new RegExp(String.raw`\\${ESCAPE}`, "i");
const ESCAPE_BEFORE = new RegExp(`^${ESCAPE}`, "i");
const NOT_ASCII = /[^!-~]/;
export const WEB = /^(?:https?|ftps?|wss?):/i;
const OTHER_SCHEME = /^[a-z][a-z0-9+.-]*:(?:[/\\]{2}|(?!\d+(?:[/\\?#]|$)))/i;
export const MAIL = /^(?:mailto:)?([^\s@/\\:?#]+@[^\s@/\\:?#]+)$/i;
/** A host name has at most 253; what is longer takes a URL parser the square of its length. */

/** An address as it may be meant where it stands in a text. */
interface RawLink {
  raw: string;
  /** Where it begins. */
  at: number;
}

/** The addresses in a text, each with and without the marks behind it. */
export function* rawLinks(text: string): Generator<RawLink> {
  for (let link = findLink(text, 0); link; link = findLink(text, link.end)) {
    const at = startOf(text, link);
    const raw = text.slice(at, link.end);
    for (const end of endsOf(raw)) yield { raw: raw.slice(0, end), at };
  }
}

/**
 * Returns where the address in a link begins: behind marks, words of a script without spaces, and the letters of an
 * escape of JSON, which stand right before it and are none of it.
 */
export function startOf(text: string, { start, end }: FoundLink): number {
  const escape = text[start - 1] === "\\" ? ESCAPE_BEFORE.exec(text.slice(start, end)) : null;
  const from = start + (escape?.[0].length ?? 0);
  return from + (PREFIX.exec(text.slice(from, end))?.[0].length ?? 0);
}

/** Returns where the first escape of JSON stands in an address; its end in the value that the JSON is of. */
export function escapeIn(raw: string): number {
  return raw.search(ESCAPE_INSIDE);
}

/** Returns where an address may end that has other marks or other scripts behind it, the longest first. */
export function endsOf(raw: string): number[] {
  const stops = [raw.length, raw.search(NOT_ASCII), escapeIn(raw), unbalanced(raw)].filter(
    (stop) => stop > 0,
  );
  const ends = stops.flatMap((stop) => {
    const closers = CLOSERS.exec(raw.slice(Math.max(0, stop - 8), stop))?.[0].length ?? 0;
    return Array.from({ length: closers + 1 }, (_, count) => stop - count);
  });
  return ends.filter((end) => end > 0).sort((one, other) => other - one);
}

/** The first closing bracket that was not opened inside. */
function unbalanced(raw: string): number {
  let depth = 0;
  for (let at = 0; at < raw.length; at += 1) {
    if (raw[at] === "(") depth += 1;
    else if (raw[at] === ")" && --depth < 0) return at;
  }
  return -1;
}

/** An address in the one form of all that lead to the same; without a scheme, as either of the web's. */
export function keysOf(raw: string): string[] {
  const address = MAIL.exec(raw)?.[1];
  if (address !== undefined) return [`mailto:${address.toLowerCase()}`];
  if (raw.length > MAX_LINK_CHARS) return [raw];
  if (WEB.test(raw)) return [webKey(raw)];
  if (OTHER_SCHEME.test(raw)) return [raw];
  return ["https", "http"].map((scheme) => webKey(`${scheme}://${raw}`));
}

function webKey(raw: string): string {
  return urlOf(raw)?.href.replace(/^([^?#]*)\/$/, "$1") ?? raw;
}

/**
 * Returns whether an address is written as a browser writes it, or shows it. Others lead to the same place (capitals in a
 * host, `/x/../`), but of them there are so many that one can be a message to whoever is asked for it.
 */
export function isPlain(raw: string): boolean {
  if (MAIL.test(raw)) return raw === raw.toLowerCase();
  const address = WEB.test(raw) ? raw : `https://${raw}`;
  const url = urlOf(address);
  if (url === null) return false;
  const { href, origin } = url;
  return [href, decoded(href), href === `${origin}/` ? origin : href].includes(address);
}

export function decoded(href: string): string {
  try {
    return decodeURI(href);
  } catch {
    return href;
  }
}
