import { isPublicName } from "../../net/domain-owner.ts";
import { MAX_HOST_CHARS, isFileName } from "./odd-address.ts";
import { isOwnUri } from "./own-names.ts";

const URL_LIKE =
  /(?:[a-z][a-z0-9+.-]{1,20}:)?[/\\]{2}(?:\[[0-9a-f:.%]{2,}\]|[^\s"'<>()[\]{}|])(?:[^\s"'<>()[\]{}|]|\([^\s"'<>()[\]{}|]*\))*/gi;
/** With one slash or none; whoever fetches it reads two. */
const WEB_LIKE = /\b(?:https?|ftps?|wss?|file):(?![/\\]{2})[^\s"'<>()[\]{}|]+/gi;
const SCHEME_LIKE = /\b(?:data|mailto|tel|sms|javascript|blob|magnet|xmpp|sip):[^\s"'<>]+/gi;
const MAIL_LIKE =
  /(?<![^\s"'<>()[\]{},;:@])[^\s"'<>()[\]{},;:@]+@(?:\[[^\s"'<>()[\]{},;@]{1,100}\]?|[^\s"'<>()[\]{},;:@]+)/g;
/**
 * A host name. `@` may precede it only at the beginning of a word (`dig @example.net`). An underscore behind it means
 * that it is no host: `light.living_room`.
 */
const HOST_LIKE =
  /(?<![\p{L}\p{N}_@.-])(?:(?<![^\s"'<>()[\]{},;:=])@)?(?:[\p{L}\p{N}_-]+\.)+[\p{L}\p{N}-]{2,}(?![\p{L}\p{N}_-])\.?(?::\d+)?(?:[/?#][^\s"'<>]*)?/giu;
const NUMERIC_HOST = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/?#][^\s"'<>]*)?/g;
const PHONE_LIKE = /\+\d[\d ()-]{6,}\d/g;

/** Returns what looks like an address in a text, as it stands there. */
export function placesInText(text: string, where: Omit<Where, "in_path">): string[] {
  const found = [WEB_LIKE, SCHEME_LIKE, NUMERIC_HOST].flatMap((pattern) => text.match(pattern) ?? []);
  found.push(...(text.match(URL_LIKE) ?? []).filter((url) => !isOwnUri(url)));
  // A calendar may have its path below the address of its owner.
  found.push(...((where.own ? text.replaceAll("/", " ") : text).match(MAIL_LIKE) ?? []));
  if (where.goes) found.push(...(text.match(PHONE_LIKE) ?? []));
  for (const { 0: name, index } of text.matchAll(HOST_LIKE))
    if (isHost(name, { ...where, in_path: /[/\\]/.test(text.charAt(index - 1)) })) found.push(name);
  return found;
}

export interface Where {
  /** Whether the parameter is for an address. */
  points: boolean;
  /** Whether the parameter is for an address that may be the bare name of a site, or a number. */
  goes: boolean;
  /** Whether something may be sent to a bare name. */
  sends: boolean;
  /** Whether the parameter is for a file name. */
  names_files: boolean;
  in_path: boolean;
  /** Whether the whole text names a thing of the tool's own server, so that a name in it is hardly a host. */
  own: boolean;
}

/**
 * Returns whether a name is a host to contact. A file may have the name of a host, and a bare site name tells its owner
 * nothing. With a path behind it, a user in front of it, or in a parameter for an address it is a destination. Behind a
 * slash it may be a file name.
 */
function isHost(name: string, where: Where): boolean {
  const { points, goes, sends, names_files, in_path } = where;
  const bare = name.replace(/^@/, "");
  const host = /^[^/?#:]+/.exec(bare)?.[0].replace(/\.$/, "") ?? "";
  if (points || host !== bare) return isPublic(host);
  if (!(sends && goes) && isFileName(host, { in_path, texts_only: sends && !names_files })) return false;
  const site = /^(?:www\.)?[^.]+\.[^.]+$/i.test(host);
  return (!site || (sends && !in_path)) && isPublic(host);
}

/**
 * Returns whether a host has a public suffix. Longer names are never looked up, and parsing one takes more than linear
 * time.
 */
function isPublic(host: string): boolean {
  return host.length > MAX_HOST_CHARS || isPublicName(host) || HIDDEN_SERVICE.test(host);
}

/** A Tor hidden service, which is found without DNS (RFC 7686). */
const HIDDEN_SERVICE = /\.onion$/i;
