import { isNamedPath } from "./named-paths.ts";
import { isTitleNamed, overlaps, sameName, type Written } from "./named-titles.ts";
import { standsBetween } from "./stands-between.ts";
import type { Place, Site, Tool } from "./tool.ts";

/** The words by which a person with authority may have named a place, and the places that are known. */
interface Said extends Written {
  /** The places that our own tools have found or made in this run. */
  places: Place[];
  site: Site | undefined;
}

/** Returns the places that a call of one of our own tools goes to. */
export function placesOf(tool: Pick<Tool, "places">, args: Record<string, unknown>): string[] {
  return (tool.places ?? []).map((name) => args[name]).filter((place) => typeof place === "string");
}

/**
 * Whether a place is named: by its id, or by its title if no other place has that title. A place that the run itself has
 * made needs no name.
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
 * Returns the title by which a place may be meant although its words may also stand there in passing; undefined where the
 * id names the place, or the run has made it.
 */
export function titleNaming(id: string, { places, ...written }: Omit<Said, "site">): string | undefined {
  if (isNamedId(id, written.trusted_text)) return undefined;
  const names = places.filter((place) => bare(place.id) === bare(id)).map(({ name }) => name);
  if (names.includes(null)) return undefined;
  const trusted = written.trusted_text.toLowerCase();
  const isSaid = (name: string): boolean => isTitleIn(trusted, name) || isTitleNamed(name, written);
  return names.find((name) => name !== null && isSaid(name)) ?? undefined;
}

/** Returns the ids of all places with a title, each once. */
export function idsCalled(title: string, places: Place[]): string[] {
  return idsOf(places.filter(({ name }) => sameName(name, title)));
}

/**
 * Returns the ids of all places that a title may stand for in an instruction: titles that contain it, or that it contains,
 * are named by the same words. None where it is plain which place is meant.
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

/** Whether a text (in lower case) contains a title that is distinctive enough. */
function isTitleIn(trusted: string, name: string): boolean {
  return isTelling(name.trim()) && isWord(trusted, name.trim().toLowerCase());
}

/** UUIDs: the only ids that are written both with and without hyphens. */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

function isNamedId(id: string, trusted: string): boolean {
  if (!UUID.test(id)) return isWord(trusted, id);
  const hex = bare(id);
  const dashed = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  // In an address of Notion's the id stands behind the title: `Shopping-list-0a1b…`.
  return [hex, dashed].some((form) =>
    standsBetween(trusted.toLowerCase(), form, { before: /[\w.@]/, after: /^(?![\w-]|\.\w)/ }),
  );
}

function bare(id: string): string {
  return (UUID.test(id) ? id.replaceAll("-", "") : id).toLowerCase();
}

/** Whether a title is distinctive: a page called "this" would be in every instruction. `name` has no blanks around it. */
function isTelling(name: string): boolean {
  return /^\S{6}/u.test(name) || (/^.{5}/su.test(name) && /\s/.test(name));
}

/** Whether an id or a title stands in a text as a word of its own, also inside an address. */
function isWord(trusted: string, wanted: string): boolean {
  return standsBetween(trusted, wanted, { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}
