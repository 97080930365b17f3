import { standsBetween } from "./stands-between.ts";
import type { Place } from "./tool.ts";

/** By its id, or by what its owner calls it if nothing else is called so; what the run itself has made needs no name. */
export function isNamedPlace(
  id: string,
  { trusted_text, places }: { trusted_text: string; places: Place[] },
): boolean {
  const trusted = trusted_text.toLowerCase();
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

/** An id or a name, also inside of an address. */
function standsAsWord(trusted: string, place: string): boolean {
  return standsBetween(trusted, place.toLowerCase(), { before: /[\w.@-]/, after: /^(?![\w-]|\.\w)/ });
}
