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
  const strange = strangePlace({ tool, args, places }, trusted_text);
  if (strange === undefined) return null;
  if (strange === TOO_MUCH) {
    const reason = `${name} was called with more text, or more addresses, than can be looked through for where it would go. Ask for less at once.`;
    return { reason, lacks: null };
  }
  const place = strange.slice(0, MAX_SHOWN_CHARS);
  const reason = `${name} was to go to ${place}, which stands neither in the instruction nor in a context of yours. Name it there if it is meant.`;
  return { reason, lacks: { target: false, destroy: false, place } };
}

/** Limits of one call: what is looked at is held against all that is trusted. */
const MAX_LOOKED_AT_CHARS = 100_000;
const MAX_PLACES = 1_000;
/** What each text takes, however short it is. */
const LOOK_CHARS = 30;
const TOO_MUCH = Symbol("more than can be looked through");

/** Where a call would go, if nobody with authority has named it. */
function strangePlace(
  { tool, args, places }: Pick<AskedCall, "tool" | "args" | "places">,
  trusted_text: string,
): string | typeof TOO_MUCH | undefined {
  // What other people's tools do with an address nobody knows; our own go nowhere but to what they are connected to.
  if (tool.foreign) {
    const found = placesIn(args, tool.read_only);
    if (found === TOO_MUCH || found.size > MAX_PLACES) return TOO_MUCH;
    if (found.size === 0) return undefined;
    const known = knownIn(trusted_text);
    return [...found.values()].find((place) => !standsIn(known, place));
  }
  if (tool.read_only) return undefined;
  const trusted = trusted_text.toLowerCase();
  const named = (tool.places ?? []).map((name) => args[name]).filter((place) => typeof place === "string");
  return named.find((id) => !isNamed(id, places, trusted));
}

let lastKnown = { of: "", text: "\n" };

/** The trusted text as it stands and as programs read it. A run asks about the same one again and again. */
function knownIn(trusted_text: string): string {
  if (lastKnown.of !== trusted_text) {
    const trusted = trusted_text.toLowerCase();
    lastKnown = { of: trusted_text, text: `${trusted}\n${asRead(trusted)}` };
  }
  return lastKnown.text;
}

/** By its id, or by what its owner calls it if nothing else is called so; what the run itself has made needs no name. */
function isNamed(id: string, places: Place[], trusted: string): boolean {
  if (standsAsWord(trusted, id) || standsAsWord(trusted, id.replaceAll("-", ""))) return true;
  const isIt = (place: Place): boolean => bare(place.id) === bare(id);
  return places.filter(isIt).some(({ name }) => {
    if (name === null) return true;
    const others = places.filter((place) => !isIt(place) && sameName(place.name, name));
    return others.length === 0 && isTelling(name.trim()) && standsAsWord(trusted, name.trim());
  });
}

function bare(id: string): string {
  return id.replaceAll("-", "").toLowerCase();
}

function sameName(one: string | null, other: string): boolean {
  return one?.trim().toLowerCase() === other.trim().toLowerCase();
}

/** Others may have chosen it: a page called "this" would be named in every instruction. `name` has no blanks around it. */
function isTelling(name: string): boolean {
  return /^\S{6}/u.test(name) || (/^.{5}/su.test(name) && /\s/.test(name));
}

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
/** Where nothing of this stands, in whatever form it is read, none of those below finds anything. */
const MAY_POINT = /[/\\:@.+]|\P{ASCII}/u;
const URL_LIKE = /(?:[a-z][a-z0-9+.-]{1,20}:)?[/\\]{2}[^\s"'<>()[\]{}|]+/gi;
/** With one slash or none; whoever fetches it reads two. */
const WEB_LIKE = /\b(?:https?|ftps?|wss?|file):(?![/\\]{2})[^\s"'<>()[\]{}|]+/gi;
const SCHEME_LIKE = /\b(?:data|mailto|tel|sms|javascript|blob|magnet|xmpp|sip):[^\s"'<>]+/gi;
const MAIL_LIKE = /(?<![^\s"'<>()[\]{},;:@])[^\s"'<>()[\]{},;:@]+@[^\s"'<>()[\]{},;:@]+/g;
const HOST_LIKE =
  /(?<![\p{L}\p{N}_@.-])(?:[\p{L}\p{N}_-]+\.)+[\p{L}\p{N}-]{2,}\.?(?::\d+)?(?:[/?#][^\s"'<>]*)?/giu;
const NUMERIC_HOST = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/?#][^\s"'<>]*)?/g;
const PHONE_LIKE = /\+\d[\d ()-]{6,}\d/g;

/** Everything in the arguments that something could be fetched from or sent to, each once, by its lower case. */
function placesIn(args: unknown, read_only: boolean): Map<string, string> | typeof TOO_MUCH {
  const found = new Map<string, string>();
  let left = MAX_LOOKED_AT_CHARS;
  for (const { key, text } of textsIn(args, "")) {
    const points = POINTER_KEY.test(key);
    // What only reads has no use for prose, so an address anywhere in it is there to be looked up.
    if (!read_only && !points && !isShort(text)) continue;
    left -= text.length + LOOK_CHARS;
    if (left < 0) return TOO_MUCH;
    for (const place of placesOf(key, text, points)) {
      const plain = place.toLowerCase();
      if (!found.has(plain)) found.set(plain, place);
    }
  }
  return found;
}

function isShort(text: string): boolean {
  const words = text.trim();
  return words.length <= MAX_POINTER_CHARS && !words.includes("\n");
}

function placesOf(key: string, text: string, points: boolean): string[] {
  const words = text.trim();
  const forms = MAY_POINT.test(text) ? [...new Set([text, asRead(text)])] : [];
  const found = forms.flatMap((form) => placesInText(form, points));
  // Programs make an address of anything that is given as one: of a number, or of a name alone.
  const whole = URL_KEY.test(key) ? words !== "" : HOST_KEY.test(key) && ODD_HOST.test(words);
  return whole ? [words].concat(found) : found;
}

/** As programs read an address: in its plainest letters (UTS #46), without what nobody sees or needs (RFC 5322 §3.2.4). */
function asRead(text: string): string {
  // One by one: many marks on one letter would take the square of their number.
  const plain = stripHiddenCharacters(text).text.replaceAll(/\P{ASCII}/gu, (char) => char.normalize("NFKC"));
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
  // No program looks a longer one up, and to read it as a name takes more than its length.
  return (points || host !== name || deep) && (host.length > MAX_HOST_CHARS || isPublicName(host));
}

const MAX_HOST_CHARS = 300;

/** Endings of files that are endings of hosts as well. */
const FILE_ENDING = /\.(md|py|sh|rs|pl|cc|so|zip|mov|ps|ai|app|st|ml|pm|in|lock|bz)$/i;

const MAX_DEPTH = 40;

/** Every text in a value with the nearest name above it; names are looked at as well. */
function* textsIn(value: unknown, key: string, depth = 0): Generator<{ key: string; text: string }> {
  if (typeof value === "string") yield { key, text: value };
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) yield { key: "url", text: JSON.stringify(value) };
  else if (Array.isArray(value)) for (const item of value) yield* textsIn(item, key, depth + 1);
  else
    for (const [name, item] of Object.entries(value)) {
      yield { key: "", text: name };
      yield* textsIn(item, name, depth + 1);
    }
}

/** As a whole: the beginning of a longer address is another one. */
function standsIn(trusted: string, place: string): boolean {
  const wanted = place.toLowerCase().replace(/(?<![/.,;:!?])[/.,;:!?]+$/, "");
  return standsBetween(trusted, wanted, { before: /[\w@.%+-]/, after: /^\/?[.,;:!?)\]}>'"*_]*(?!\S)/ });
}

/** An id or a name, also inside of an address. */
function standsAsWord(trusted: string, place: string): boolean {
  return standsBetween(trusted, place.toLowerCase(), { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}

const MAX_AFTER_CHARS = 20;
/** A longer place is no address, and one that stands in so many others is not meant. */
const MAX_PLACE_CHARS = 4_000;
const MAX_OCCURRENCES = 1_000;

/** Whether a text stands in another one with nothing of `before` before it and with `after` behind it. */
function standsBetween(text: string, wanted: string, ends: { before: RegExp; after: RegExp }): boolean {
  if (wanted === "" || wanted.length > MAX_PLACE_CHARS) return false;
  let left = MAX_OCCURRENCES;
  for (let at = text.indexOf(wanted); at !== -1 && left > 0; at = text.indexOf(wanted, at + 1)) {
    left -= 1;
    const behind = at + wanted.length;
    if (
      !ends.before.test(text.charAt(at - 1)) &&
      ends.after.test(text.slice(behind, behind + MAX_AFTER_CHARS))
    )
      return true;
  }
  return false;
}
