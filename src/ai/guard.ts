import type { Place, Tool } from "./tool.ts";
import type { Authority } from "../db/schema.ts";
import type { Scope } from "../inboxes/settings.ts";
import { isPublicName } from "../mail/domain-owner.ts";
import { stripHiddenCharacters } from "../mail/hidden-characters.ts";

/**
 * The trust boundary around tools. A run may use what its inbox, its sender and its instruction allow together
 * (decision L.7); once it has read anything that others wrote, a call has to fit to what the instruction itself
 * says (L.8, P.4). A model that obeys everything it reads must get nowhere with it.
 */
export interface Guard {
  powersOf: (asked: Asked) => Powers;
  /** Why a call must not be made; null if it may. */
  objectionTo: (call: AskedCall) => Objection | null;
}

export interface Objection {
  /** As a sentence. */
  reason: string;
  /** What the instruction would have to say for it; null where nothing would do. */
  lacks: Lacks | null;
}

export interface Lacks {
  /** Its target, at the beginning. */
  target: boolean;
  /** `--allow-destructive`. */
  destroy: boolean;
  /** Where the call was to go. */
  place: string | null;
}

/** All of it decided by people with authority: the owner of the inbox, and who wrote the instruction. */
export interface Asked {
  authority: Authority;
  scope: Scope | null;
  /** The target that the instruction names. */
  target: string | null;
  /** False by `--no-tools`. */
  tools: boolean;
  /** `--allow-destructive`. */
  allow_destructive: boolean;
}

export interface Powers {
  /** Whether the tools of a target may be offered at all. */
  mayUse: (target: string) => boolean;
  /** Whether its writing tools may run although others have been read. */
  mayWrite: (target: string) => boolean;
  destroy: boolean;
}

export interface AskedCall {
  tool: Tool;
  args: Record<string, unknown>;
  powers: Powers;
  /** Whether the model has read anything that others wrote, but for what the target's own server says of its tools. */
  tainted: boolean;
  /** The instruction, the owner's own documents, and the addresses of the people whose run it is. */
  trusted_text: string;
  /** What our own tools have found or made in this run. */
  places: Place[];
}

export const GUARD: Guard = { powersOf, objectionTo };

/** Of the tool that makes files: at home in every inbox that may use tools, whatever the instruction is aimed at. */
export const FILES_TARGET = "files";

function powersOf({ authority, scope, target, tools, allow_destructive }: Asked): Powers {
  const trusted = authority === "owner" || authority === "listed";
  const inScope = (name: string): boolean => scope === null || names(scope.targets, name);
  const mayUse = (name: string): boolean => {
    if (!trusted || !tools || scope?.targets.length === 0) return false;
    return name === FILES_TARGET || (inScope(name) && (target === null || target === name));
  };
  return {
    mayUse,
    mayWrite: (name) => mayUse(name) && (target === name || names(scope?.autonomous ?? [], name)),
    destroy: trusted && allow_destructive,
  };
}

/** A tool server may be listed with or without its prefix. */
function names(list: string[], target: string): boolean {
  return list.some((entry) => entry === target || `mcp:${entry}` === target);
}

function objectionTo({ tool, args, powers, tainted, trusted_text, places }: AskedCall): Objection | null {
  const { name, target } = tool;
  if (!powers.mayUse(target)) return { reason: `@${target} may not be used for this message.`, lacks: null };
  const destroy = tool.destructive && !powers.destroy;
  if (tainted && !tool.read_only && !powers.mayWrite(target)) {
    const reason = `${name} may change something, and the instruction does not begin with @${target}, nor does scope.autonomous of the inbox list it.`;
    return { reason, lacks: { target: true, destroy, place: null } };
  }
  if (destroy) {
    const reason = `${name} may delete or overwrite something, which needs --allow-destructive in the instruction.`;
    return { reason, lacks: { target: false, destroy, place: null } };
  }
  // What a server says of its own tools may still choose where they go.
  if (!tainted && !tool.foreign) return null;
  const strange = strangePlace({ tool, args, places }, trusted_text.toLowerCase());
  if (strange === undefined) return null;
  const place = strange.slice(0, MAX_SHOWN_CHARS);
  const reason = `${name} was to go to ${place}, which stands neither in the instruction nor in a context of yours. Name it there if it is meant.`;
  return { reason, lacks: { target: false, destroy: false, place } };
}

/** Where a call would go, if nobody with authority has named it. */
function strangePlace(
  { tool, args, places }: Pick<AskedCall, "tool" | "args" | "places">,
  trusted: string,
): string | undefined {
  // What other people's tools do with an address nobody knows; our own go nowhere but to what they are connected to.
  if (tool.foreign) {
    const known = `${trusted}\n${asRead(trusted)}`;
    return firstOf(placesIn(args, tool.read_only), (place) => !standsIn(known, place));
  }
  if (tool.read_only) return undefined;
  const named = (tool.places ?? []).map((name) => args[name]).filter((place) => typeof place === "string");
  return named.find((id) => !isNamed(id, places, trusted));
}

/** The first that is so; equal ones are looked at once, however many there are. */
function firstOf(places: string[], is: (place: string) => boolean): string | undefined {
  const seen = new Set<string>();
  return places.find((place) => {
    const plain = place.toLowerCase();
    if (seen.has(plain)) return false;
    seen.add(plain);
    return is(place);
  });
}

/** By its id, or by what its owner calls it if nothing else is called so; what the run itself has made needs no name. */
function isNamed(id: string, places: Place[], trusted: string): boolean {
  if (standsAsWord(trusted, id) || standsAsWord(trusted, id.replaceAll("-", ""))) return true;
  const isIt = (place: Place): boolean => bare(place.id) === bare(id);
  return places.filter(isIt).some(({ name }) => {
    if (name === null) return true;
    const others = places.filter((place) => !isIt(place) && sameName(place.name, name));
    return others.length === 0 && TELLING_NAME.test(name.trim()) && standsAsWord(trusted, name.trim());
  });
}

function bare(id: string): string {
  return id.replaceAll("-", "").toLowerCase();
}

function sameName(one: string | null, other: string): boolean {
  return one?.trim().toLowerCase() === other.trim().toLowerCase();
}

/** Others may have chosen it: a page called "this" would be named in every instruction. */
const TELLING_NAME = /^(?=.{5})\S.*\s.*\S$|^\S{6}/su;
const MAX_SHOWN_CHARS = 200;
/** Beyond it, or over several lines, a text is something to be written down, not somewhere to go. */
const MAX_POINTER_CHARS = 300;
const POINTER_KEY =
  /ur[il]|link|href|host|domain|site|server|endpoint|webhook|callback|recipient|e?-?mail|^(to|cc|bcc|from|attendees?|guests?|invitees?|participants?|members?|users?|share.*|assignees?|address(es)?|phone|number|channel)$/i;
/** As a word of its own, however words are put together: `url`, `image_url`, `imageUrl`, `imageURLs`. */
const URL_KEY =
  /(?:^|[^A-Za-z])ur[il]s?$|(?:Ur[il]|UR[IL])s?$|[Hh]ref$|[Ww]eb_?[Hh]ook|[Cc]allback|[Ee]ndpoint/;
/** Where a host belongs: one in numbers that says something behind them, in any of the ways that programs read. */
const HOST_KEY = /host|domain|server|site|endpoint/i;
const ODD_HOST =
  /^(?:\[[0-9a-f:.%]{2,60}\]|(?:0x[0-9a-f]{1,16}|\d{1,20})(?:\.(?:0x[0-9a-f]{1,16}|\d{1,20})){0,3}(?=[:/?#]))\S*$/i;
const URL_LIKE = /(?:[a-z][a-z0-9+.-]{1,20}:)?[/\\]{2}[^\s"'<>()[\]{}|]+/gi;
/** With one slash or none; whoever fetches it reads two. */
const WEB_LIKE = /\b(?:https?|ftps?|wss?|file):(?![/\\]{2})[^\s"'<>()[\]{}|]+/gi;
const SCHEME_LIKE = /\b(?:data|mailto|tel|sms|javascript|blob|magnet|xmpp|sip):[^\s"'<>]+/gi;
const MAIL_LIKE = /(?<![^\s"'<>()[\]{},;:@])[^\s"'<>()[\]{},;:@]+@[^\s"'<>()[\]{},;:@]+/g;
const HOST_LIKE =
  /(?<![\p{L}\p{N}_@.-])(?:[\p{L}\p{N}_-]+\.)+[\p{L}\p{N}-]{2,}\.?(?::\d+)?(?:[/?#][^\s"'<>]*)?/giu;
const NUMERIC_HOST = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/?#][^\s"'<>]*)?/g;
const PHONE_LIKE = /\+\d[\d ()-]{6,}\d/g;

/** Everything in the arguments that something could be fetched from or sent to. */
function placesIn(args: unknown, read_only: boolean): string[] {
  return textsIn(args, "").flatMap(({ key, text }) => {
    const points = POINTER_KEY.test(key);
    const words = text.trim();
    const short = words.length <= MAX_POINTER_CHARS && !words.includes("\n");
    // What only reads has no use for prose, so an address anywhere in it is there to be looked up.
    if (!read_only && !points && !short) return [];
    const found = [...new Set([text, asRead(text)])].flatMap((form) => placesInText(form, points));
    // Programs make an address of anything that is given as one: of a number, or of a name alone.
    const whole = URL_KEY.test(key) ? words !== "" : HOST_KEY.test(key) && ODD_HOST.test(words);
    return whole ? [words].concat(found) : found;
  });
}

/** As programs read an address: in its plainest letters (UTS #46), without what nobody sees or needs (RFC 5322 §3.2.4). */
function asRead(text: string): string {
  // One by one: many marks on one letter would take the square of their number.
  const plain = stripHiddenCharacters(text).text.replaceAll(/[^\p{ASCII}]/gu, (char) =>
    char.normalize("NFKC"),
  );
  return plain.replaceAll(/[\u3002\uFF61]/g, ".").replaceAll('"', "");
}

function placesInText(text: string, points: boolean): string[] {
  const found = [URL_LIKE, WEB_LIKE, SCHEME_LIKE, MAIL_LIKE, NUMERIC_HOST].flatMap(
    (pattern) => text.match(pattern) ?? [],
  );
  if (points) found.push(...(text.match(PHONE_LIKE) ?? []));
  return [...found, ...(text.match(HOST_LIKE) ?? []).filter((name) => isHost(name, points))];
}

/**
 * A file may be called like a host, and the name of a site alone tells its owner nothing; with a path behind it or a
 * name in front of it, or where an address belongs, it is somewhere to go.
 */
function isHost(name: string, points: boolean): boolean {
  const host = /^[^/?#:]+/.exec(name)?.[0].replace(/\.$/, "") ?? "";
  const deep = host.split(".").length > 2 && !/^www\.[^.]+\.[^.]+$/i.test(host) && !FILE_ENDING.test(host);
  return (points || host !== name || deep) && isPublicName(host);
}

/** Endings of files that are endings of hosts as well. */
const FILE_ENDING = /\.(md|py|sh|rs|pl|cc|so|zip|mov|ps|ai|app|st|ml|pm|in|lock|bz)$/i;

const MAX_DEPTH = 40;

/** Every text in a value with the nearest name above it; names are looked at as well. */
function textsIn(value: unknown, key: string, depth = 0): { key: string; text: string }[] {
  if (typeof value === "string") return [{ key, text: value }];
  if (typeof value !== "object" || value === null) return [];
  if (depth > MAX_DEPTH) return [{ key: "url", text: JSON.stringify(value) }];
  if (Array.isArray(value)) return value.flatMap((item) => textsIn(item, key, depth + 1));
  const names = Object.keys(value).map((text) => ({ key: "", text }));
  return names.concat(Object.entries(value).flatMap(([name, item]) => textsIn(item, name, depth + 1)));
}

/** As a whole: the beginning of a longer address is another one. */
function standsIn(trusted: string, place: string): boolean {
  const wanted = place.toLowerCase().replace(/[/.,;:!?]+$/, "");
  return standsBetween(trusted, wanted, { before: /[\w@.%+-]/, after: /^\/?[.,;:!?)\]}>'"*_]*(?!\S)/ });
}

/** An id or a name, also inside of an address. */
function standsAsWord(trusted: string, place: string): boolean {
  return standsBetween(trusted, place.toLowerCase(), { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}

const MAX_AFTER_CHARS = 20;

/** Whether a text stands in another one with nothing of `before` before it and with `after` behind it. */
function standsBetween(text: string, wanted: string, ends: { before: RegExp; after: RegExp }): boolean {
  if (wanted === "") return false;
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    const behind = at + wanted.length;
    if (
      !ends.before.test(text.charAt(at - 1)) &&
      ends.after.test(text.slice(behind, behind + MAX_AFTER_CHARS))
    )
      return true;
  }
  return false;
}
