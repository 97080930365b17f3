import type { Going } from "./guard.ts";
import { idsCalled, idsMixedUp, titleNaming } from "./named-places.ts";
import { isTitleQuoted } from "./named-titles.ts";
import type { Place } from "./tool.ts";

/** The title by which the instruction names a place, and the words to find others with that title. */
export interface TitleToFind {
  title: string;
  /** The beginning of the title, where the instruction could mean a longer or shorter title. */
  words: string;
}

/** Returns the title to search for; null where something else says which place is meant. */
export function titleToFind(id: string, going: Going): TitleToFind | null {
  const title = titleNaming(id, going);
  if (title === undefined) return null;
  const whole = going.tool.read_only || isTitleQuoted(title, going);
  return { title, words: whole ? title : title.trim().split(/\s+/).slice(0, 2).join(" ") };
}

/**
 * Returns the ids of all places that an instruction may mean by a title, and whether several have exactly that title.
 */
export function alikeOnes(title: string, places: Place[], going: Going): { ids: string[]; many: boolean } {
  const same = idsCalled(title, places);
  const many = same.length > 1;
  // Reading either one is harmless.
  return { ids: many || going.tool.read_only ? same : idsMixedUp(title, places, going), many };
}
