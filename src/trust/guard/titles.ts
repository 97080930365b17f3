import type { Going } from "./guard.ts";
import { idsCalled, idsMixedUp, titleNaming } from "./named-places.ts";
import { isTitleQuoted } from "./named-titles.ts";
import type { Place } from "./tool.ts";

/** The title that the instruction names a place by, and the words to look for others of that title with. */
export interface TitleToFind {
  title: string;
  /** Its beginning, where the title could be words that go on or end sooner than is meant. */
  words: string;
}

/** Null where something other than its title says which place is meant. */
export function titleToFind(id: string, going: Going): TitleToFind | null {
  const title = titleNaming(id, going);
  if (title === undefined) return null;
  const whole = going.tool.read_only || isTitleQuoted(title, going);
  return { title, words: whole ? title : title.trim().split(/\s+/).slice(0, 2).join(" ") };
}

/** The ids of all that an instruction may mean by a title, and whether more than one has that very title. */
export function alikeOnes(title: string, places: Place[], going: Going): { ids: string[]; many: boolean } {
  const same = idsCalled(title, places);
  const many = same.length > 1;
  // What is only read may be the one or the other.
  return { ids: many || going.tool.read_only ? same : idsMixedUp(title, places, going), many };
}
