import { isTime } from "./is-time.ts";

/** Limit of cached formatters, above the number of time zones and their aliases: names in odd case would add more. */
const MAX_FORMATTERS = 1_000;
/** Formatters by time zone, because creating one costs far more than using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** Returns a time for people and models: "Saturday, 2026-11-28, 18:10 (Europe/Berlin, UTC+01:00)". */
export function writtenMoment(second: number, zone: string): string {
  if (!isTime(second)) return "a time that cannot be read any more";
  const { weekday, year, month, day, hour, minute, timeZoneName } = partsOf(second, zone);
  const where = zone === "UTC" ? zone : `${zone}, ${timeZoneName?.replace("GMT", "UTC")}`;
  return `${weekday}, ${year}-${month}-${day}, ${hour}:${minute} (${where})`;
}

/** Returns the parts of a time in a zone, by their `Intl.DateTimeFormat` names. */
export function partsOf(second: number, zone: string): Partial<Record<Intl.DateTimeFormatPartTypes, string>> {
  const parts = formatterFor(zone).formatToParts(second * 1_000);
  return Object.fromEntries(parts.map(({ type, value }) => [type, value]));
}

/** Returns a stored time zone, or UTC where a damaged disk, or a newer version, has left one that is not known here. */
export function knownZone(zone: string): string {
  try {
    formatterFor(zone);
    return zone;
  } catch (error) {
    if (error instanceof RangeError) return "UTC";
    throw error;
  }
}

function formatterFor(zone: string): Intl.DateTimeFormat {
  const made = formatters.get(zone) ?? makeFormatter(zone);
  if (formatters.size >= MAX_FORMATTERS) formatters.clear();
  formatters.set(zone, made);
  return made;
}

function makeFormatter(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat("en-GB", {
    weekday: "long",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZoneName: "longOffset",
    timeZone,
  });
}
