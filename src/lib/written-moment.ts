/** More zones than there are, with their other names: what is over comes of names in odd cases. */
const MAX_FORMATTERS = 1_000;
/** One for each time zone that somebody has, because making one costs far more than using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** "Saturday, 2026-11-28, 18:10 (Europe/Berlin, UTC+01:00)", to be read by people and models alike. */
export function writtenMoment(second: number, zone: string): string {
  const { weekday, year, month, day, hour, minute, timeZoneName } = partsOf(second, zone);
  const where = zone === "UTC" ? zone : `${zone}, ${timeZoneName?.replace("GMT", "UTC")}`;
  return `${weekday}, ${year}-${month}-${day}, ${hour}:${minute} (${where})`;
}

/** Returns a moment as the clock and the calendar of a zone show it, by the names that `Intl.DateTimeFormat` has for its parts. */
export function partsOf(second: number, zone: string): Partial<Record<Intl.DateTimeFormatPartTypes, string>> {
  const parts = formatterFor(zone).formatToParts(second * 1_000);
  return Object.fromEntries(parts.map(({ type, value }) => [type, value]));
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
