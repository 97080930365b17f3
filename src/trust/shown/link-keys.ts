import { findLink, MAX_LINK_CHARS } from "./find-link.ts";

/** Marks that may follow an address without being part of it. */
export const CLOSERS = /[)'*,;.!?:~_]{1,8}$/;
export const NO_SPACES = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]/u;
const PREFIX = new RegExp(`^(?:[\`'{|}/*~_]{1,8}|${NO_SPACES.source}+)`, "u");
const NOT_ASCII = /[^!-~]/;
export const WEB = /^(?:https?|ftps?|wss?):/i;
const OTHER_SCHEME = /^[a-z][a-z0-9+.-]*:(?:[/\\]{2}|(?!\d+(?:[/\\?#]|$)))/i;
export const MAIL = /^(?:mailto:)?([^\s@/\\:?#]+@[^\s@/\\:?#]+)$/i;
/** A host name has at most 253; what is longer takes a URL parser the square of its length. */
const MAX_HOST_CHARS = 300;

/** An address as it may be meant where it stands in a text. */
interface RawLink {
  raw: string;
  /** Where it begins. */
  at: number;
}

/** The addresses in a text, each with and without the marks behind it. */
export function* rawLinks(text: string): Generator<RawLink> {
  for (let link = findLink(text, 0); link; link = findLink(text, link.end)) {
    const at = link.start + prefixOf(text.slice(link.start, link.end));
    const raw = text.slice(at, link.end);
    for (const end of endsOf(raw)) yield { raw: raw.slice(0, end), at };
  }
}

/** Marks, or words of a script without spaces, that stand right before an address and are none of it. */
export function prefixOf(raw: string): number {
  return PREFIX.exec(raw)?.[0].length ?? 0;
}

/** Returns where an address may end that has other marks or other scripts behind it, the longest first. */
export function endsOf(raw: string): number[] {
  const stops = [raw.length, raw.search(NOT_ASCII), unbalanced(raw)].filter((stop) => stop > 0);
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

/** A web address with a scheme, parsed; null where it is none, or too long. */
export function urlOf(raw: string): URL | null {
  const host = /^[a-z]+:[/\\]*([^/\\?#]*)/i.exec(raw)?.[1] ?? "";
  return host.length > MAX_HOST_CHARS || raw.length > MAX_LINK_CHARS ? null : URL.parse(raw);
}
