import { standsBetween } from "./stands-between.ts";
import type { Place, Site } from "./tool.ts";

/** What a person with authority may have named a place by. */
interface Said {
  trusted_text: string;
  /** What our own tools have found or made in this run. */
  places: Place[];
  site: Site | undefined;
}

/** By its id, or by what its owner calls it if nothing else is called so; what the run itself has made needs no name. */
export function isNamedPlace(id: string, { trusted_text, places, site }: Said): boolean {
  const trusted = trusted_text.toLowerCase();
  if (id.includes("/")) return isNamedPath(id.toLowerCase(), trusted, site);
  if (isNamedId(id, trusted_text)) return true;
  const isIt = (place: Place): boolean => bare(place.id) === bare(id);
  return places.filter(isIt).some(({ name }) => {
    if (name === null) return true;
    const others = places.filter((place) => !isIt(place) && sameName(place.name, name));
    return others.length === 0 && isTitleIn(trusted, name);
  });
}

/** The title that a place is named by where nothing else says which place is meant; undefined where something does. */
export function titleNaming(id: string, { trusted_text, places }: Omit<Said, "site">): string | undefined {
  if (isNamedId(id, trusted_text)) return undefined;
  const names = places.filter((place) => bare(place.id) === bare(id)).map(({ name }) => name);
  if (names.includes(null)) return undefined;
  return names.find((name) => name !== null && isTitleIn(trusted_text.toLowerCase(), name)) ?? undefined;
}

/** The ids of all places with a title, each once. */
export function idsCalled(title: string, places: Place[]): string[] {
  const ids = places.filter(({ name }) => sameName(name, title)).map(({ id }) => id);
  return [...new Map(ids.map((id) => [bare(id), id])).values()];
}

/** In lower case. */
function isTitleIn(trusted: string, name: string): boolean {
  return isTelling(name.trim()) && isWord(trusted, name.trim().toLowerCase());
}

/** The only ids that are written with hyphens and without. */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

function isNamedId(id: string, trusted: string): boolean {
  if (!UUID.test(id)) return isWord(trusted, id);
  const hex = bare(id);
  const dashed = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  // In an address of Notion's it stands behind the title: `Shopping-list-0a1b…`.
  return [hex, dashed].some((form) =>
    standsBetween(trusted.toLowerCase(), form, { before: /[\w.@]/, after: /^(?![\w-]|\.\w)/ }),
  );
}

function bare(id: string): string {
  return (UUID.test(id) ? id.replaceAll("-", "") : id).toLowerCase();
}

export function sameName(one: string | null, other: string): boolean {
  return one?.trim().toLowerCase() === other.trim().toLowerCase();
}

/** Others may have chosen it: a page called "this" would be named in every instruction. `name` has no blanks around it. */
function isTelling(name: string): boolean {
  return /^\S{6}/u.test(name) || (/^.{5}/su.test(name) && /\s/.test(name));
}

/** An id or a name, also inside of an address. */
function isWord(trusted: string, wanted: string): boolean {
  return standsBetween(trusted, wanted, { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}

const MAX_BEFORE_CHARS = 200;
const MAX_BEHIND_CHARS = 30;
/** In the address of a page, or in one of git's. */
const URL_BEFORE = /(?:^|[^\w@.:/-])(?:https?:\/\/)?(?:www\.)?([a-z0-9.-]{1,100}(?::\d{1,5})?)\/$/;
const GIT_BEFORE = /git@([a-z0-9.-]{1,100}):$/;
/** Where the name ends in an address; behind it nothing but the pages that every project has. */
const URL_AFTER = /^(?:\.git)?(?![\w-]|\.\w)/;
const URL_AFTER_NESTED =
  /^(?:\.git)?\/?(?:(?![\w./-])|\.(?!\w)|(?<=\/)(?:-|issues|merge_requests|tree|blob|commits?|wikis)(?![\w-]))/;

/** `owner/name`, which in lower case is written like many a pair of words, and like the beginning of many a path. */
function isNamedPath(id: string, trusted: string, site: Site | undefined): boolean {
  const inUrl = (at: number): boolean => {
    const before = trusted.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
    const host = (URL_BEFORE.exec(before) ?? GIT_BEFORE.exec(before))?.[1];
    return host !== undefined && (site === undefined || host === site.host);
  };
  const after = site?.nested === true ? URL_AFTER_NESTED : URL_AFTER;
  return (
    standsBetween(trusted, id, { before: /[^/:]/, after, accepts: inUrl }) ||
    standsBetween(trusted, id, {
      before: /[\w.@/\\-]/,
      after: /^(?![\w/\\-]|\.\w)/,
      accepts: (at) => isMeant(id, trusted, at),
    })
  );
}

/** Pairs of words that people write in no other meaning, and somebody may have taken as a name. */
const PAIRS = new Set(
  "and/or or/and yes/no no/yes he/she she/he him/her his/her she/they they/them und/oder ja/nein et/ou oui/non y/o e/o si/no en/of client/server input/output read/write on/off true/false start/end begin/end ci/cd tcp/ip pros/cons pass/fail win/win buy/sell before/after in/out up/down left/right".split(
    " ",
  ),
);
/** Words that a place is named after, in the languages that the most instructions are in. */
const LEADS = new Set(
  "in into to for at on of from under with about against via the im ins zu zum zur für bei beim auf an unter von aus nach dans sur pour à au de du chez en para sobre nel per su di da voor op bij naar".split(
    " ",
  ),
);
const LAST_WORD = /(?<![\p{L}\p{N}_-])[\p{L}\p{N}_-]{1,20}$/u;
const NOUN_BEFORE =
  /(?:repo|repos|repository|repositories|project|projects|projekt|dépôt|projet|repositorio|proyecto|projeto|progetto)(?![\p{L}\p{N}_/-])[^\n/]{0,20}$/u;
const NOUN_AFTER = /^\s{1,3}(?:repo|repository|project|projekt)\b/;
/** The item before this one in a list, whose first item is led to. */
const ITEM_BEFORE = /[\w.-]\/[\w.-]{1,100}(?:\s{0,3},|\s{1,3}(?:and|or|und|oder|et|ou|y|e|en|of|&))$/;
const OPENING = /["'`“„«‹<([\s]{1,10}$/;

/** Whether what stands there is the name of a place, and no pair of words or numbers. */
function isMeant(id: string, trusted: string, at: number): boolean {
  const before = trusted.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
  const after = trusted.slice(at + id.length, at + id.length + MAX_BEHIND_CHARS);
  if (/[`"“„«]$/.test(before) && /^[`"”“»]/.test(after)) return true;
  if (PAIRS.has(id) || /^[\d./]+$/.test(id) || /(?:^|\/)\w(?:\/|$)/.test(id)) return false;
  // Alone on its line, or what the line is about.
  const heads = /(?:^|\n)[\s*•>#+-]{0,10}$/.test(before) && /^\s{0,3}(?:$|\n|[:#,–—])/.test(after);
  return heads || isLed(before) || NOUN_AFTER.test(after);
}

function isLed(before: string): boolean {
  const led = before.replace(OPENING, "");
  const word = LAST_WORD.exec(led)?.[0] ?? "";
  return /[:=]$/.test(led) || LEADS.has(word) || ITEM_BEFORE.test(led) || NOUN_BEFORE.test(before);
}
