import { isNamedPath } from "./named-paths.ts";
import { isTitleNamed, overlaps, sameName, type Written } from "./named-titles.ts";
import { standsBetween } from "./stands-between.ts";
import type { Place, Site, Tool } from "./tool.ts";

/** What a person with authority may have named a place by. */
interface Said extends Written {
  /** What our own tools have found or made in this run. */
  places: Place[];
  site: Site | undefined;
}

/** Where a call of a tool of ours goes. */
export function placesOf(tool: Pick<Tool, "places">, args: Record<string, unknown>): string[] {
  return (tool.places ?? []).map((name) => args[name]).filter((place) => typeof place === "string");
}

/** By its id, or by what its owner calls it if nothing else is called so; what the run itself has made needs no name. */
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
 * The title that a place may be named by where nothing else says which place is meant, although it may be words in
 * passing; undefined where something does.
 */
export function titleNaming(id: string, { places, ...written }: Omit<Said, "site">): string | undefined {
  if (isNamedId(id, written.trusted_text)) return undefined;
  const names = places.filter((place) => bare(place.id) === bare(id)).map(({ name }) => name);
  if (names.includes(null)) return undefined;
  const trusted = written.trusted_text.toLowerCase();
  const isSaid = (name: string): boolean => isTitleIn(trusted, name) || isTitleNamed(name, written);
  return names.find((name) => name !== null && isSaid(name)) ?? undefined;
}

/** The ids of all places with a title, each once. */
export function idsCalled(title: string, places: Place[]): string[] {
  return idsOf(places.filter(({ name }) => sameName(name, title)));
}

/**
 * The ids of all places that a title may stand for in an instruction, since one that has it in its own, or the other way
 * round, is named there as well; none where it is plain which one is meant.
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

/** A page called "this" would be in every instruction. `name` has no blanks around it. */
function isTelling(name: string): boolean {
  return /^\S{6}/u.test(name) || (/^.{5}/su.test(name) && /\s/.test(name));
}

/** An id or a name, also inside of an address. */
function isWord(trusted: string, wanted: string): boolean {
  return standsBetween(trusted, wanted, { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}
