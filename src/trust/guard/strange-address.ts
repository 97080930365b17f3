import { isPublicName } from "../../net/domain-owner.ts";
import { asRead } from "./as-read.ts";
import { isInsideAddress, readKeepingAddresses } from "./inside-address.ts";
import { MAX_HOST_CHARS, isFileName, isOddAddress, isOddRecipient } from "./odd-address.ts";
import { isPhoneKey, isPlaceKey, namesFiles, namesThings } from "./key-words.ts";
import { LOOK_CHARS, TOO_MUCH, textsIn } from "./packed/texts.ts";
import { type DigitRun, digitRunsIn, isNamedPhone, phonesIn } from "./phones.ts";
import { isLineKey, isProseKey, recipientsIn } from "./prose.ts";
import { loadsByBeingShown } from "./loads.ts";
import { standsBetween } from "./stands-between.ts";

/** What a call is, as far as it matters for the addresses in its arguments. */
interface Look {
  read_only: boolean;
  /** Whether the model has read what others wrote, so that a word may be an address that does not look like one. */
  tainted: boolean;
  /** Domains of inboxes here. What a tool mails there in its owner's name would come back as an order of the owner's. */
  own_domains: string[];
}

/** Limits of one call: what is looked at is held against all that is trusted. */
const MAX_LOOKED_AT_CHARS = 100_000;
const MAX_PLACES = 1_000;

/** Words by which addresses count as named, by who could have put them there. */
interface Naming {
  trusted_text: string;
  /** The address of a page that a program may have shared, and the trusted text without it. */
  shared: { page: string; trusted_text: string } | null;
}

/** Where a call of somebody else's tool would go. */
export interface Destinations {
  /** An address that the trusted text does not hold, or that is of an inbox here, named or not. */
  strange: string | undefined;
  /** The sites that it goes to. */
  sites: ReadonlySet<string>;
  /** One of them that only the sharing of its page names. */
  only_shared: string | undefined;
}

export function destinationsOf(
  args: Record<string, unknown>,
  { trusted_text, shared, ...look }: Look & Naming,
): Destinations | typeof TOO_MUCH {
  const found = placesIn(args, look);
  if (found === TOO_MUCH || found.places.size > MAX_PLACES) return TOO_MUCH;
  const { inbox, places, sites } = found;
  if (inbox !== undefined || places.size === 0) return { strange: inbox, sites, only_shared: undefined };
  const strange = firstUnnamed(places, trusted_text);
  const only_shared = shared === null ? undefined : firstUnnamed(sites, shared.trusted_text);
  return { strange, sites, only_shared };
}

function firstUnnamed(places: ReadonlySet<string>, trusted_text: string): string | undefined {
  const known = knownIn(trusted_text);
  return [...places].find(
    (place) =>
      !standsIn(known, place) &&
      !standsIn(known, place.replace(/^@/, "")) &&
      !(NUMBER.test(place) && isNamedPhone(place, known.runs)),
  );
}

/** A number and nothing else, as it may be given to call or write to somebody. */
const NUMBER = /^(?:[a-z]{1,10}:)?[^\p{L}@]+$/iu;

/** Whether a place is an address at one of these domains. */
export function isAtOwn(place: string, own_domains: string[]): boolean {
  const lower = place.toLowerCase();
  return own_domains.some((domain) => {
    const at = lower.indexOf(`@${domain}`);
    return at !== -1 && !/^\.?[\p{L}\p{N}_-]/u.test(lower.slice(at + domain.length + 1));
  });
}

interface Known {
  text: string;
  /** As long as the text. */
  lower: string;
  /** Its numbers. */
  runs: DigitRun[];
}

let lastKnown: { of: string; known: Known } = { of: "", known: { text: "\n", lower: "\n", runs: [] } };

/** The trusted text as it stands and as programs read it. A run asks about the same one again and again. */
function knownIn(trusted_text: string): Known {
  if (lastKnown.of !== trusted_text) {
    const text = `${trusted_text}\n${readKeepingAddresses(trusted_text)}`;
    lastKnown = { of: trusted_text, known: { text, lower: lowered(text), runs: digitRunsIn(trusted_text) } };
  }
  return lastKnown.known;
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

/** As a whole: the beginning of a longer address is another one. */
function standsIn({ text, lower }: Known, place: string): boolean {
  const wanted = place.replace(/(?<![/.,;:!?])[/.,;:!?]+$/, "");
  const path = BEFORE_PATH.exec(wanted)?.[0].length ?? 0;
  return standsBetween(lower, lowered(wanted), {
    before: /[\w@.%+-]/,
    // What is encoded may end it, as a blank does where it is looked for in the arguments.
    after: /^\/?[.,;:!?)\]}>'"*_]*(?![^\s\uE000])/,
    accepts: (at) => text.startsWith(wanted.slice(path), at + path) && !isInsideAddress(text, at),
  });
}

/** Beyond it, or over several lines, a text of prose is something to be written down, not somewhere to go; a line never is. */
const MAX_POINTER_CHARS = 300;
const POINTER_KEY =
  /ur[il]|link|href|host|domain|site|server|endpoint|webhook|callback|recipient|e?-?mail|^(to|cc|bcc|from|attendees?|guests?|invitees?|participants?|members?|users?|share.*|assignees?|address(es)?|phone|number|channel)$/i;
const RECIPIENT_KEY = /^(?:to|cc|bcc|recipients?|e?-?mails?)$/i;
/** As a word of its own, however words are put together: `url`, `image_url`, `imageUrl`, `imageURLs`. */
const URL_KEY =
  /(?:^|[^A-Za-z])ur[il]s?$|(?:Ur[il]|UR[IL])s?$|[Hh]ref$|[Ww]eb_?[Hh]ook|[Cc]allback|[Ee]ndpoint/;
/** Where a host belongs: one in numbers that says something behind them, in any of the ways that programs read. */
const HOST_KEY = /host|domain|server|site|endpoint/i;
const ODD_HOST =
  /^(?:\[[0-9a-f:.%]{2,60}\]|(?:0x[0-9a-f]{1,16}|\d{1,20})(?:\.(?:0x[0-9a-f]{1,16}|\d{1,20})){0,3}(?=[:/?#]))\S*$/i;
/** Where nothing of this stands, in whatever form it is read, none of those below finds anything. */
const MAY_POINT = /[/\\:@.+%&]|=\?|\P{ASCII}/u;
const URL_LIKE =
  /(?:[a-z][a-z0-9+.-]{1,20}:)?[/\\]{2}(?:\[[0-9a-f:.%]{2,60}\]|[^\s"'<>()[\]{}|])[^\s"'<>()[\]{}|]*/gi;
/** With one slash or none; whoever fetches it reads two. */
const WEB_LIKE = /\b(?:https?|ftps?|wss?|file):(?![/\\]{2})[^\s"'<>()[\]{}|]+/gi;
const SCHEME_LIKE = /\b(?:data|mailto|tel|sms|javascript|blob|magnet|xmpp|sip):[^\s"'<>]+/gi;
const MAIL_LIKE =
  /(?<![^\s"'<>()[\]{},;:@])[^\s"'<>()[\]{},;:@]+@(?:\[[^\s"'<>()[\]{},;@]{1,100}\]?|[^\s"'<>()[\]{},;:@]+)/g;
/** With a sign in front only where a word begins: `dig @example.net`. No name of a host goes on with a low line: `light.living_room`. */
const HOST_LIKE =
  /(?<![\p{L}\p{N}_@.-])(?:(?<![^\s"'<>()[\]{},;:=])@)?(?:[\p{L}\p{N}_-]+\.)+[\p{L}\p{N}-]{2,}(?![\p{L}\p{N}_-])\.?(?::\d+)?(?:[/?#][^\s"'<>]*)?/giu;
const NUMERIC_HOST = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[/?#][^\s"'<>]*)?/g;
const PHONE_LIKE = /\+\d[\d ()-]{6,}\d/g;

/** What a call holds beside one text, and that tells nobody anything: a switch, or how many results there may be. */
const MAX_COUNT = 1_000;
/** A parameter's name, which has no room for words of others. */
const PARAMETER = /^[A-Za-z][A-Za-z_-]{0,30}$/;

/** The one text that a call holds; null where it holds more, which could be told to whatever that text names. */
function onlyTextIn(args: Record<string, unknown>): string | null {
  const texts = Object.entries(args).flatMap(([name, value]) => {
    const counts = Number.isInteger(value) && Math.abs(Number(value)) <= MAX_COUNT;
    return PARAMETER.test(name) && (counts || typeof value === "boolean" || value === null) ? [] : [value];
  });
  const [text] = texts;
  const names = Object.keys(args).every((name) => PARAMETER.test(name));
  return names && texts.length === 1 && typeof text === "string" ? text : null;
}

interface Places {
  /** Everything that something could be fetched from or sent to, each once. */
  places: Set<string>;
  /** Those of them that are sites, and are no words to look for or to write down. */
  sites: Set<string>;
  /** One of our inboxes, if something is sent there. */
  inbox: string | undefined;
}

function placesIn(args: Record<string, unknown>, look: Look): Places | typeof TOO_MUCH {
  const found = new Set<string>();
  const sites = new Set<string>();
  const only = look.read_only ? onlyTextIn(args) : null;
  let inbox: string | undefined;
  let left = MAX_LOOKED_AT_CHARS;
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH) return TOO_MUCH;
    const { seen, places, sent, goes_to } = lookAt(given.key, textOf(given), { ...look, only });
    if (seen > 0 && !given.packed) left -= seen + LOOK_CHARS;
    if (left < 0) return TOO_MUCH;
    for (const place of places) found.add(place);
    for (const site of goes_to) sites.add(site);
    if (sent) inbox ??= places.find((place) => isAtOwn(place, look.own_domains));
  }
  return { places: found, sites, inbox };
}

const PHONE = /^\+[\d ()-]+$/;

/** Whether a place is somebody's mail address or phone. */
function isPersons(place: string): boolean {
  return PHONE.test(place) || (place.indexOf("@") > 0 && !/[/\\:?#]/.test(place));
}

/** A search engine is told the bare name of a site, and goes to none. */
function isSite(key: string, place: string): boolean {
  return !isPersons(place) && !(SEARCH_KEY.test(key) && /^[\p{L}\p{N}._-]+$/u.test(place));
}

interface LookedAt {
  /** How many characters were looked through. */
  seen: number;
  places: string[];
  /** Whether something is sent there. */
  sent: boolean;
  /** The sites that the call goes to, rather than write them down. */
  goes_to: string[];
}

/** The places in one text. */
function lookAt(key: string, text: string, look: Looking): LookedAt {
  // What only reads has no use for prose, so an address anywhere in it is there to be looked up.
  const prose = !look.read_only && !POINTER_KEY.test(key) && isProseKey(key);
  if (prose && !isLineKey(key) && !isShort(text)) return lookAtLong(key, text, look);
  if (text === "" || text.length > MAX_LOOKED_AT_CHARS) return notLookedAt(text);
  const places = prose ? writtenIn(key, text, text) : givenIn(key, text, look);
  const goes_to = prose ? [] : places.filter((place) => isSite(key, place));
  return { seen: text.length, places, sent: !look.read_only && !prose, goes_to };
}

/** What is written down goes nowhere, but for a mail that says itself to whom, and what is fetched for whoever reads it. */
function lookAtLong(key: string, text: string, { tainted }: Looking): LookedAt {
  const loads = tainted && loadsByBeingShown(text);
  const seen = loads ? text : recipientsIn(text);
  if (seen === "" || seen.length > MAX_LOOKED_AT_CHARS) return notLookedAt(seen);
  const places = loads ? loadedIn(key, text) : writtenIn(key, seen, text);
  return { seen: seen.length, places, sent: true, goes_to: [] };
}

function notLookedAt(text: string): LookedAt {
  return { seen: text.length, places: [], sent: false, goes_to: [] };
}

/** Numbers with fewer digits are no address on the internet (RFC 6890: 0.0.0.0/8), and no phone's abroad. */
const MIN_ADDRESS = 10_000_000;

/** A number is looked at as a text where an address belongs: elsewhere it counts or measures something. */
function textOf({ key, value }: { key: string; value: string | number }): string {
  if (typeof value === "string") return value;
  if (isPhoneKey(key)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < MIN_ADDRESS) return "";
  const points = [POINTER_KEY, URL_KEY, HOST_KEY].some((pattern) => pattern.test(key));
  return points || isPlaceKey(key) ? String(value) : "";
}

/** Which of the addresses are fetched depends on who shows the text, so that all of the web count, and a mail's recipients. */
function loadedIn(key: string, text: string): string[] {
  const recipients = recipientsIn(text);
  const people = recipients === "" ? [] : writtenIn(key, recipients, text);
  return writtenIn(key, text, text)
    .filter((place) => !isPersons(place))
    .concat(people);
}

/** In prose, or in what it says of its recipients. */
function writtenIn(key: string, seen: string, text: string): string[] {
  const points = seen !== text;
  return placesOf(key, seen, { points, goes: points, sends: false, names_files: true });
}

function givenIn(key: string, text: string, look: Looking): string[] {
  const points = POINTER_KEY.test(key);
  const sends =
    look.tainted && !isLookup(key, text, look) && (points || look.read_only || !namesThings(key, text));
  const goes = points || isPlaceKey(key);
  const found = placesOf(key, text, { points, goes, sends, names_files: namesFiles(key) });
  if (!look.tainted) return found;
  const phones = look.read_only ? [] : phonesIn(key, text);
  return found.concat(phones, oddWordsIn(key, text, { ...look, sends }));
}

interface Looking extends Look {
  /** The one text that the call of a reading tool holds. */
  only: string | null;
}

/** Below such a key stand words for a search engine, which looks for the name of a site and goes to none. */
const SEARCH_KEY = /^(?:q|query|search|search_?query|search_?terms?|keywords?|terms?)$/i;

/** Whether a reading tool asks about a name and tells nobody more than that: the name, or words to look for, are all that it gets. */
function isLookup(key: string, text: string, { read_only, only }: Looking): boolean {
  if (!read_only || text !== only) return false;
  return SEARCH_KEY.test(key) || !/\s/.test(inOneLine(text));
}

function isShort(text: string): boolean {
  const words = text.trim();
  return words.length <= MAX_POINTER_CHARS && !words.includes("\n");
}

function placesOf(key: string, text: string, where: Omit<Where, "in_path">): string[] {
  const words = text.trim();
  const forms = MAY_POINT.test(text) ? formsOf(text) : [];
  const found = forms.flatMap((form) => placesInText(form, where));
  // Programs make an address of anything that is given as one: of a number, or of a name alone.
  const whole = URL_KEY.test(key) ? words !== "" : HOST_KEY.test(key) && ODD_HOST.test(words);
  return whole ? [words].concat(found) : found;
}

/** A text as it stands, and as programs read it where that is another one. */
function formsOf(text: string): string[] {
  const read = asRead(text);
  return read === text ? [text] : [text, read];
}

/** Returns what may be an address to some program in a recipient, and in a text without blanks, though it looks like none. */
function oddWordsIn(
  key: string,
  text: string,
  { read_only, sends }: Pick<Where, "sends"> & { read_only: boolean },
): string[] {
  const recipients = RECIPIENT_KEY.test(key) ? text.split(/[,;\n]/).filter(isOddRecipient) : [];
  const word = inOneLine(text);
  if (word === "" || /\s/.test(word)) return recipients;
  const joined =
    word === text.trim()
      ? []
      : formsOf(word).flatMap((form) =>
          placesInText(form, { points: false, goes: false, sends, names_files: false }),
        );
  const parts = asRead(word).split(/[,;|]/);
  return recipients.concat(
    joined,
    parts.filter((part) => isOddAddress(part, { key, read_only, sends })),
  );
}

/** As programs read an address: they leave tabs and line breaks out of it (WHATWG URL). */
function inOneLine(text: string): string {
  return text.replaceAll(/[\t\r\n]/g, "").trim();
}

function placesInText(text: string, where: Omit<Where, "in_path">): string[] {
  const found = [URL_LIKE, WEB_LIKE, SCHEME_LIKE, MAIL_LIKE, NUMERIC_HOST].flatMap(
    (pattern) => text.match(pattern) ?? [],
  );
  if (where.goes) found.push(...(text.match(PHONE_LIKE) ?? []));
  for (const { 0: name, index } of text.matchAll(HOST_LIKE))
    if (isHost(name, { ...where, in_path: /[/\\]/.test(text.charAt(index - 1)) })) found.push(name);
  return found;
}

interface Where {
  /** Whether an address belongs there. */
  points: boolean;
  /** Whether an address belongs there that may be the name of a site alone, or a number. */
  goes: boolean;
  /** Whether something may be sent to a name alone. */
  sends: boolean;
  /** Whether the name of a file belongs there. */
  names_files: boolean;
  in_path: boolean;
}

/**
 * A file may be called like a host, and the name of a site alone tells its owner nothing; with a path behind it or a
 * name in front of it, or where an address belongs, it is somewhere to go. Behind a slash it may be a file's.
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

/** No program looks a longer one up, and to read it as a name takes more than its length. */
function isPublic(host: string): boolean {
  return host.length > MAX_HOST_CHARS || isPublicName(host) || HIDDEN_SERVICE.test(host);
}

/** A host that is found without DNS (RFC 7686). */
const HIDDEN_SERVICE = /\.onion$/i;
