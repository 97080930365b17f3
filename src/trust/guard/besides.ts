import { type Going, type Objection, objectionToPlace, objectionToText, tooMuch } from "./guard.ts";
import { textsOf } from "./tells.ts";
import { isMadeUpSite } from "./unfurled.ts";

/** How many addresses a consent may name. */
const MAX_NAMED = 20;

/** A place that says what it is: a repository, or an issue in one. */
const READABLE = /^[\w.-]+(?:\/[\w.-]+)+(?:#\d{1,10})?$/;

/**
 * Returns the objection to a page or a spreadsheet that nobody has named: it goes by an id, and who is asked about it could not see
 * whose it is.
 */
function unreadable(objection: Objection | null): Objection | null {
  const place = objection?.lacks?.place ?? null;
  return objection === null || (place !== null && READABLE.test(place))
    ? null
    : { ...objection, lacks: null };
}

/** What a consent to a call is about, where the guard objects to it. */
export interface Besides {
  /** What no consent lifts. */
  objection: Objection | null;
  /** The places that nobody has named. */
  unnamed: string[];
}

/**
 * Returns what no consent lifts in a call that the guard objects to, and what one would have to lift. The guard names what comes first; behind a place that
 * the instruction does not name there may be an address of this server, a word that is an order in a mail, or a text that acts by
 * itself. So each place counts as named once it was found, until nothing is left or what is left is of that kind.
 */
export function objectionBesides(going: Going): Besides {
  if (!going.tool.foreign) return besidesOwn(objectionToPlace(going));
  const text = objectionToText(going);
  if (text !== null) return { objection: text, unnamed: [] };
  const texts = textsOf(going);
  // Nobody who is asked about such an address could see what its site would be told by it.
  const isMadeUp = (place: string): boolean => going.tainted && isMadeUpSite(place, texts);
  const named = { ...going };
  const unnamed: string[] = [];
  for (let count = 0; count <= MAX_NAMED; count += 1) {
    const objection = objectionToPlace(named);
    if (objection === null) return { objection, unnamed };
    const place = objection.lacks?.place ?? null;
    if (place === null || isMadeUp(place) || named.trusted_text.endsWith(`\n${place}`))
      return { objection: { ...objection, lacks: null }, unnamed };
    unnamed.push(place);
    named.trusted_text += `\n${place}`;
  }
  return { objection: tooMuch(going.tool.name), unnamed };
}

function besidesOwn(objection: Objection | null): Besides {
  const place = objection?.lacks?.place ?? null;
  return { objection: unreadable(objection), unnamed: place === null ? [] : [place] };
}
