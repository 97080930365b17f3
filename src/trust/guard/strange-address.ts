import { normalForm } from "../../lib/normal-form.ts";
import { asRead } from "./as-read.ts";
import { withoutCardIds } from "./card-ids.ts";
import { type GivenIds, isGivenId } from "./given-ids.ts";
import { hiddenOwnIn } from "./own-inboxes.ts";
import { isAboutAddress, isOwnName } from "./own-names.ts";
import { knownIn, namesAddress } from "./named-addresses.ts";
import { isOddAddress, isOddRecipient } from "./odd-address.ts";
import {
  isBeginningKey,
  isPhoneKey,
  isPlaceKey,
  isReceiverKey,
  namesFiles,
  namesThings,
} from "./key-words.ts";
import { LOOK_CHARS, TOO_MUCH, textsIn } from "./packed/texts.ts";
import { placesInText, type Where } from "./places-in-text.ts";
import { isNamedPhone, isUnixTime, phonesIn } from "./phones.ts";
import { addressesIn, addressesReadIn, mayHaveAddress } from "./prose-addresses.ts";
import { isLineKey, isProseKey } from "./prose.ts";
import { type Recipients, recipientsIn } from "./recipients.ts";
import { loadsByBeingShown } from "./loads.ts";
import { shownIn } from "./shown-values.ts";
import { goingOnIn } from "./unfurled.ts";

/** What matters about a call for judging the addresses in its arguments. */
interface Look {
  read_only: boolean;
  /** Whether the model has read text of others, so that a word may be a disguised address. */
  tainted: boolean;
  /** Domains of inboxes of this server. A mail there in the owner's name would count as the owner's command. */
  own_domains: string[];
  /** What the results of the tool's own server have named in this run. */
  given: GivenIds;
  /** The country code of the account's telephones, if it is known. */
  calling_code: string | null;
  /** What the run has read: the mail addresses in it may be written down, but nothing is sent to them. */
  material: string;
}

/** Limits of one call: each place found is searched for in all trusted text. */
const MAX_LOOKED_AT_CHARS = 100_000;
const MAX_PLACES = 1_000;

/** The texts by which addresses count as named. */
interface Naming {
  trusted_text: string;
  /** The URL of a page that a program may have shared, and the trusted text without it. */
  shared: { page: string; trusted_text: string } | null;
}

/** Where a call of an external tool would go. */
export interface Destinations {
  /** An address that is not in the trusted text, or one of an inbox of this server even if named. */
  strange: string | undefined;
  /** The sites that it contacts. */
  sites: ReadonlySet<string>;
  /** One of these sites that only a shared page names. */
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
  const strange = firstUnnamed(places, trusted_text, look);
  const given = new Map([...sites].map((site) => [site, places.get(site) ?? false]));
  const only_shared = shared === null ? undefined : firstUnnamed(given, shared.trusted_text, look);
  return { strange, sites, only_shared };
}

function firstUnnamed(
  places: ReadonlyMap<string, boolean>,
  trusted_text: string,
  { read_only, calling_code }: Pick<Look, "read_only" | "calling_code">,
): string | undefined {
  const known = knownIn(trusted_text);
  const isNamed = (place: string, written: boolean): boolean =>
    waysToMean(place, written).some((way) => namesAddress(known, way, { read_only })) ||
    (NUMBER.test(place) && isNamedPhone(place, known.runs, calling_code));
  return [...places].find(([place, written]) => !isNamed(place, written))?.[0];
}

/** What a place may stand for: in words for people, and behind a mail address, there can be marks that are none of it. */
function waysToMean(place: string, written: boolean): string[] {
  const bare = place.replace(/^@/, "");
  const marks = MARKS.exec(bare)?.[0].length ?? 0;
  const ends = Array.from({ length: marks }, (_, count) => bare.slice(0, -count - 1));
  // The stop behind the name of a host that is whole is none of it either.
  return [
    place,
    bare,
    ...ends.filter((way) => written || isPersons(way)),
    bare.replace(/^([^/\\?#:]+)\.$/, "$1"),
  ];
}

/** So few that which ones there are tells nobody anything. */
const MARKS = /[)\]}'"*_,;.!?:~]{1,4}$/;

/** A number and nothing else, as it may be given to call or write to somebody. */
const NUMBER = /^(?:[a-z]{1,10}:)?[^\p{L}@]+$/iu;

/** Returns whether a place is an address at one of these domains. */
export function isAtOwn(place: string, own_domains: string[]): boolean {
  const lower = normalForm("NFC", place.toLowerCase());
  return own_domains.some((domain) => {
    const at = lower.indexOf(`@${domain}`);
    return at !== -1 && !/^\.?[\p{L}\p{N}_-]/u.test(lower.slice(at + domain.length + 1));
  });
}

/** Beyond it, or over several lines, a text of prose is something to be written down, not somewhere to go; a line never is. */
const MAX_POINTER_CHARS = 300;
const POINTER_KEY =
  /ur[il]|link|href|host|domain|site|server|endpoint|webhook|callback|recipient|e?-?mail|^(to|cc|bcc|from|attendees?|guests?|invitees?|participants?|members?|users?|share.*|assignees?|address(es)?|phone|number|channel)$/i;
const RECIPIENT_KEY = /^(?:to|cc|bcc|recipients?|e?-?mails?)$/i;
/** Parameter names with the word URL, however words are joined: `url`, `image_url`, `imageUrl`, `imageURLs`. */
const URL_KEY =
  /(?:^|[^A-Za-z])ur[il]s?$|(?:Ur[il]|UR[IL])s?$|[Hh]ref$|[Ww]eb_?[Hh]ook|[Cc]allback|[Ee]ndpoint/;
/** Parameter names for a host; and a numeric host with a path behind it, in any form that programs accept. */
const HOST_KEY = /host|domain|server|site|endpoint/i;
const ODD_HOST =
  /^(?:\[[0-9a-f:.%]{2,60}\]|(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}(?=[:/?#]))\S*$/i;
/** A text without any of these characters, in any decoded form, contains no address. */
const MAY_POINT = /[/\\:@.+%&]|=\?|\P{ASCII}/u;
/**
 * Largest number that may accompany the only text of a call: it counts as a switch or a number of results, and tells
 * nothing.
 */
const MAX_COUNT = 1_000;
/** The form of a parameter's name, too short to carry text of others. */
const PARAMETER = /^[A-Za-z][A-Za-z_-]{0,30}$/;

/** Returns the only text in a call; null where there are more, which could be told to whatever that text names. */
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
  /** Everything that something could be fetched from or sent to, and whether it stands in words for people alone. */
  places: Map<string, boolean>;
  /** Those of them that are sites, and are no words to look for or to write down. */
  sites: Set<string>;
  /** An inbox of this server to which something is sent, if any. */
  inbox: string | undefined;
}

function placesIn(args: Record<string, unknown>, look: Look): Places | typeof TOO_MUCH {
  const found = new Map<string, boolean>();
  const sites = new Set<string>();
  const only = look.read_only ? onlyTextIn(args) : null;
  const ranges = Object.keys(args).some(isBeginningKey);
  let inbox: string | undefined;
  let left = MAX_LOOKED_AT_CHARS;
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH) return TOO_MUCH;
    const { seen, places, sent, goes_to, is_written } = lookAt(given.key, textOf(given, ranges), {
      ...look,
      only,
      ranges,
    });
    if (seen > 0 && !given.packed) left -= seen + LOOK_CHARS;
    if (left < 0) return TOO_MUCH;
    for (const place of places) found.set(place, is_written && found.get(place) !== false);
    for (const site of goes_to) sites.add(site);
    inbox ??= sent.find((place) => isAtOwn(place, look.own_domains));
  }
  return { places: found, sites, inbox };
}

const PHONE = /^\+[\d ()-]+$/;

/** Returns whether a place is a mail address or telephone number. */
function isPersons(place: string): boolean {
  return PHONE.test(place) || (place.indexOf("@") > 0 && !/[/\\:?#]/.test(place));
}

/**
 * Returns whether a place is a site that the call contacts. A search engine gets the bare name of a site and does not
 * contact it.
 */
function isSite(key: string, place: string): boolean {
  return !isPersons(place) && !(SEARCH_KEY.test(key) && /^[\p{L}\p{N}._-]+$/u.test(place));
}

interface LookedAt {
  /** How many characters were searched. */
  seen: number;
  places: string[];
  /** Those of them to which something is sent. */
  sent: string[];
  /** The sites that the call contacts, as opposed to writing them down. */
  goes_to: string[];
  /** Whether they stand in words for people, who read them and fetch nothing. */
  is_written: boolean;
}

/** Whether it is written down for people. What only reads has no use for that, so an address anywhere in it is there to be looked up. */
function isProse(key: string, { read_only }: Look): boolean {
  return !read_only && !POINTER_KEY.test(key) && isProseKey(key);
}

/** Finds the places in one text. */
function lookAt(key: string, text: string, look: Looking): LookedAt {
  const prose = isProse(key, look);
  if (prose && !isLineKey(key) && !isShort(text)) return lookAtLong(key, text, look);
  if (text === "" || text.length > MAX_LOOKED_AT_CHARS) return notLookedAt(text);
  if (isIdOfOwn(key, text, look)) return { ...notLookedAt(text), is_written: false };
  const places = prose ? writtenIn(key, text, text) : givenIn(key, text, look);
  const goes_to = prose ? [] : places.filter((place) => isSite(key, place));
  const is_written = prose ? !loadsByBeingShown(text) : isQuestion(text, look);
  const sent = look.read_only || prose ? [] : places;
  const all = places.concat(loadedBy(key, text, look));
  return { seen: text.length, places: all, sent, goes_to, is_written };
}

/** An id at an inbox of this server is of a mail of ours: what a tool writes to it counts as the owner's. */
function isIdOfOwn(key: string, text: string, { given, read_only, own_domains }: Looking): boolean {
  return isGivenId(key, text, given) && (read_only || !isAtOwn(asRead(text), own_domains));
}

/** Whether words stand beside an address in what is only looked for or asked about. */
function isQuestion(text: string, { read_only }: Look): boolean {
  return read_only && /\s/.test(text.trim());
}

/**
 * Finds the places in long content. Content is sent nowhere, except a text with recipients of its own, and except what
 * viewing it fetches.
 */
function lookAtLong(key: string, text: string, look: Looking): LookedAt {
  const loads = look.tainted && loadsByBeingShown(text);
  const recipients = recipientsIn(text);
  const written = look.tainted ? strangersIn(text, look) : [];
  const looked = loads ? [text] : recipients.map(({ value }) => value);
  const seen = [...looked, ...written].join(" ");
  if (seen === "" || seen.length > MAX_LOOKED_AT_CHARS) return notLookedAt(seen);
  const places = loads ? loadedIn(key, text, recipients) : peopleIn(key, recipients, text);
  return { seen: seen.length, places: places.concat(written), sent: places, goes_to: [], is_written: false };
}

/**
 * Returns the addresses in words for people that stand nowhere in what the run has read: the model made them up, and in a form that
 * nobody here knows they could be recipients. One of an inbox of this server always counts.
 */
function strangersIn(text: string, { material, own_domains, given }: Looking): string[] {
  if (!mayHaveAddress(text)) return [];
  const hidden = hiddenOwnIn(text, own_domains);
  if (hidden !== undefined) return [hidden];
  const read = addressesReadIn(material);
  const isOwn = (address: string): boolean => isAtOwn(address, own_domains);
  const words = withoutCardIds(text, isOwn).replaceAll(MAIL_ID, (id) => (isOwn(id) ? id : ""));
  return addressesIn(words)
    .filter(({ address, shown }) => isOwn(address) || !(read.has(address) || given.words.includes(shown)))
    .map(({ shown }) => shown);
}

/** The id of a mail in its header (RFC 5322 §3.6.4), which looks like an address and is none. */
const MAIL_ID = /^(?:message-id|in-reply-to|content-id):[ \t]{0,9}<[^<>\s]{1,300}>/gim;

function notLookedAt(text: string): LookedAt {
  return { seen: text.length, places: [], sent: [], goes_to: [], is_written: true };
}

/** Smaller numbers are no address on the internet (RFC 6890: 0.0.0.0/8) and no international telephone number. */
const MIN_ADDRESS = 10_000_000;

/** Returns a number as text where an address is expected; elsewhere it only counts or measures. */
function textOf({ key, value }: { key: string; value: string | number }, ranges: boolean): string {
  if (typeof value === "string") return value;
  if (isPhoneKey(key)) return String(value);
  if (isReceiverKey(key) && isUnixTime(String(value))) return "";
  if (Number.isInteger(value) && Math.abs(value) < MIN_ADDRESS)
    return !ranges && isReceiverKey(key) ? String(value) : "";
  const points = [POINTER_KEY, URL_KEY, HOST_KEY].some((pattern) => pattern.test(key));
  return points || isPlaceKey(key) ? String(value) : "";
}

/**
 * Returns all web addresses in a text that loads something when shown, since what is fetched depends on the viewer, and
 * the recipients of a mail.
 */
function loadedIn(key: string, text: string, recipients: Recipients[]): string[] {
  return writtenIn(key, text, text)
    .filter((place) => !isPersons(place))
    .concat(peopleIn(key, recipients, text), goingOnIn(text), loadedBy(key, text, { tainted: true }));
}

/** Returns what programs load once they show a text, also where it does not stand there as it is asked for. */
function loadedBy(key: string, text: string, { tainted }: Pick<Look, "tainted">): string[] {
  if (!tainted || !loadsByBeingShown(text)) return [];
  const { addresses, values, styles } = shownIn(text);
  const more = [...values, ...styles].join("\n");
  return addresses.concat(more === "" ? [] : writtenIn(key, more, more).filter((place) => !isPersons(place)));
}

/** Returns the recipients of a text, also those whom only some programs read in the field of a mail. */
function peopleIn(key: string, recipients: Recipients[], text: string): string[] {
  return recipients.flatMap(({ value, is_field }) => {
    const people = addressesIn(value).map(({ shown }) => shown);
    if (!is_field) return people;
    const others = writtenIn(key, value.replaceAll(/mailto:/gi, ""), text).filter((place) =>
      place.includes("@"),
    );
    const items = value.split(/[,;\n]/).map((item) => item.replace(/^[\s"'*-]{1,99}/, ""));
    return [...others, ...items.filter(isOddRecipient), ...people];
  });
}

/** Returns the places in prose, or in the recipients of a mail. */
function writtenIn(key: string, seen: string, text: string): string[] {
  const points = seen !== text;
  return placesOf(key, seen, { points, goes: points, sends: false, names_files: true });
}

function givenIn(key: string, given: string, look: Looking): string[] {
  const points = POINTER_KEY.test(key);
  const is_place = points || isPlaceKey(key) || URL_KEY.test(key) || RECIPIENT_KEY.test(key);
  const text = is_place ? given : withoutCardIds(given, (id) => isAtOwn(asRead(id), look.own_domains));
  const sends =
    look.tainted && !isLookup(key, text, look) && (points || look.read_only || !namesThings(key, text));
  const goes = points || isPlaceKey(key);
  const found = placesOf(key, text, { points, goes, sends, names_files: namesFiles(key) });
  if (!look.tainted) return found;
  const phones = look.read_only ? [] : phonesIn(key, text, look.ranges);
  return found.concat(phones, oddWordsIn(key, text, { ...look, sends }));
}

interface Looking extends Look {
  /** The only text in the call of a reading tool. */
  only: string | null;
  /** Whether the call has a beginning of something, such as a period. */
  ranges: boolean;
}

/** Parameter names for search terms: a search engine looks for the name of a site and does not contact it. */
const SEARCH_KEY = /^(?:q|query|search|search_?query|search_?terms?|keywords?|terms?)$/i;

/** Returns whether a reading tool only looks up a name: its only text is that name, or search terms. */
function isLookup(key: string, text: string, { read_only, only }: Looking): boolean {
  if (!read_only || text !== only) return false;
  return SEARCH_KEY.test(key) || !/\s/.test(inOneLine(text));
}

function isShort(text: string): boolean {
  const words = text.trim();
  return words.length <= MAX_POINTER_CHARS && !words.includes("\n");
}

function placesOf(key: string, text: string, where: Omit<Where, "in_path" | "own">): string[] {
  const words = text.trim();
  const own = formsOf(words).every(isOwnName);
  const forms = MAY_POINT.test(text) ? formsOf(text) : [];
  const found = forms.flatMap((form) => placesInText(form, { ...where, own, points: where.points && !own }));
  // Programs turn anything in such a parameter into an address that may be one, such as a number.
  const whole = URL_KEY.test(key)
    ? !own && !isAboutAddress(key, words)
    : HOST_KEY.test(key) && ODD_HOST.test(words);
  return whole ? [words].concat(found) : found;
}

/** Returns a text as written and, where it differs, as programs read it. */
function formsOf(text: string): string[] {
  const read = asRead(text);
  return read === text ? [text] : [text, read];
}

/**
 * Returns words in a recipient, or in a text without spaces, that some program may read as an address although they do
 * not look like one.
 */
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
          placesInText(form, { points: false, goes: false, sends, names_files: false, own: false }),
        );
  const parts = asRead(word).split(/[,;|]/);
  return recipients.concat(
    joined,
    parts.filter((part) => isOddAddress(part, { key, read_only, sends })),
  );
}

/** Removes tabs and line breaks, as programs do in a URL (WHATWG URL). */
function inOneLine(text: string): string {
  return text.replaceAll(/[\t\r\n]/g, "").trim();
}
