import { isNamedPath } from "./named-paths.ts";
import { isTitleNamed, overlaps, sameName, type Written } from "./named-titles.ts";
import { standsBetween } from "./stands-between.ts";
import type { Place, Site, Tool } from "./tool.ts";

/** The text by which a person with authority may have named a place, with the known places. */
interface Said extends Written {
  /** The places that built-in tools have found or made in this run. */
  places: Place[];
  site: Site | undefined;
}

/** Returns the places that a call of a built-in tool goes to. */
export function placesOf(tool: Pick<Tool, "places">, args: Record<string, unknown>): string[] {
  return (tool.places ?? []).map((name) => args[name]).filter((place) => typeof place === "string");
}

/**
 * Returns whether a place is named: by its id, or by its title if no other place has that title. A place that this run
 * made needs no naming.
 */
export function isNamedPlace(id: string, { places, site, ...written }: Said): boolean {
  if (id.includes("/")) return isNamedPath(id.toLowerCase(), written.trusted_text.toLowerCase(), site);
  if (isNamedId(id, written.trusted_text)) return true;
  const isIt = (place: Place): boolean => bare(place.id) === bare(id);
  const others = places.filter((place) => !isIt(place));
  return places.filter(isIt).some(({ name }) => {
    if (name === null) return true;
    return (
      !others.some((place) => sameName(place.name, name)) && isTitleNamed(name, written, titlesOf(others))
    );
  });
}

/**
 * Returns the title by which a place seems to be named, although the same words may be there by chance; undefined where
 * the id names the place, or the run made it.
 */
export function titleNaming(id: string, { places, ...written }: Omit<Said, "site">): string | undefined {
  if (isNamedId(id, written.trusted_text)) return undefined;
  const names = places.filter((place) => bare(place.id) === bare(id)).map(({ name }) => name);
  if (names.includes(null)) return undefined;
  const trusted = written.trusted_text.toLowerCase();
  const isSaid = (name: string): boolean => isTitleIn(trusted, name) || isTitleNamed(name, written);
  return names.find((name) => name !== null && isSaid(name)) ?? undefined;
}

/** Returns the distinct ids of all places with a title. */
export function idsCalled(title: string, places: Place[]): string[] {
  return idsOf(places.filter(({ name }) => sameName(name, title)));
}

/**
 * Returns the ids of all places that an instruction may mean by a title: a title that contains this one, or is
 * contained in it, matches the same words. Empty where it is clear which place is meant.
 */
export function idsMixedUp(title: string, places: Place[], written: Written): string[] {
  const others = titlesOf(places.filter(({ name }) => !sameName(name, title)));
  if (!isTitleNamed(title, written) || isTitleNamed(title, written, others)) return [];
  return idsOf(
    places.filter(({ name }) => name !== null && (sameName(name, title) || overlaps(name, title))),
  );
}

function idsOf(places: Place[]): string[] {
  return [...new Map(places.map(({ id }) => [bare(id), id])).values()];
}

function titlesOf(places: Place[]): string[] {
  return places.map(({ name }) => name).filter((name) => name !== null);
}

/** Returns whether a text (in lower case) contains a title that is distinctive enough. */
function isTitleIn(trusted: string, name: string): boolean {
  return isTelling(name.trim()) && isWord(trusted, name.trim().toLowerCase());
}

/** UUIDs, the only ids written both with and without hyphens. */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

function isNamedId(id: string, trusted: string): boolean {
  if (!UUID.test(id)) return isWord(trusted, id);
  const hex = bare(id);
  const dashed = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  // In Notion's URLs the id follows the title: `Shopping-list-0a1b…`.
  return [hex, dashed].some((form) =>
    standsBetween(trusted.toLowerCase(), form, { before: /[\w.@]/, after: /^(?![\w-]|\.\w)/ }),
  );
}

function bare(id: string): string {
  return (UUID.test(id) ? id.replaceAll("-", "") : id).toLowerCase();
}

/** Returns whether a title is distinctive: a page called "this" would be in every instruction. `name` is trimmed. */
function isTelling(name: string): boolean {
  return /^\S{6}/u.test(name) || (/^.{5}/su.test(name) && /\s/.test(name));
}

/** Returns whether an id or title occurs in a text as a word, also inside a URL. */
function isWord(trusted: string, wanted: string): boolean {
  return standsBetween(trusted, wanted, { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}
