import { isInsideAddress } from "./inside-address.ts";
import { standsBetween } from "./stands-between.ts";
import type { Place } from "./tool.ts";

/** Something that has a number at its place: an issue of a repository. */
export interface Numbered {
  place: string;
  number: number;
}

/** Returns the full name of an issue: `acme/site#12`. */
export function wholeName({ place, number }: Numbered): string {
  return `${place}#${number}`;
}

const AT_PLACE = ["#", "/issues/", "/-/issues/", "/work_items/", "/-/work_items/", "/pull/", "/pulls/"];
const AFTER = /^(?![\w-]|[.,:/]\d)/;
const MAX_NOUN_CHARS = 40;
const MAX_HOST_CHARS = 200;
const HOST_BEFORE = /(?:https?:\/\/)?[a-z0-9.:-]{1,150}\/$/;
/**
 * Nouns for an issue, in the languages that most instructions are written in. A number without a noun may count or date
 * something else.
 */
const NOUN =
  /(?<![\p{L}\p{N}])(?:issue|issues|ticket|tickets|bug|bugs|pr|pull request|request|vorgang|fehler|anfrage|demande|incidencia|problema|segnalazione|solicitud)[\s-]{0,3}(?:(?:no|nr|number|nummer|numéro|numero|número|n°|nº)\.?)?[\s:]{0,3}$/u;

/**
 * Returns whether a person with authority named an issue: by its full name, by the URL of its page, or as `#12` or
 * `issue 12` together with the place. An issue that this run created needs no naming.
 */
export function isNamedIssue(
  one: Numbered,
  { trusted_text, places }: { trusted_text: string; places: Place[] },
): boolean {
  const [place, number] = [one.place.toLowerCase(), String(one.number)];
  if (places.some(({ id, name }) => name === null && id.toLowerCase() === wholeName({ ...one, place })))
    return true;
  const trusted = trusted_text.toLowerCase();
  // A match counts at the beginning of a URL's path, or outside of URLs.
  const isOnItsPage = (at: number): boolean => {
    const host = HOST_BEFORE.exec(trusted.slice(Math.max(0, at - MAX_HOST_CHARS), at))?.[0] ?? "";
    return !isInsideAddress(trusted, at - host.length);
  };
  const stands = (wanted: string, before: RegExp, accepts: (at: number) => boolean = () => true): boolean =>
    standsBetween(trusted, wanted, { before, after: AFTER, accepts });
  return (
    AT_PLACE.some((between) => stands(`${place}${between}${number}`, /[\w.@-]/, isOnItsPage)) ||
    stands(`#${number}`, /[\w/.&#-]/, (at) => !isInsideAddress(trusted, at)) ||
    stands(
      number,
      /[\w/.,#-]/,
      (at) => NOUN.test(trusted.slice(Math.max(0, at - MAX_NOUN_CHARS), at)) && !isInsideAddress(trusted, at),
    )
  );
}
