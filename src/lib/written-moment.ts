/** More zones than there are, with their other names: what is over comes of names in odd cases. */
const MAX_FORMATTERS = 1_000;
/** One for each time zone that somebody has, because making one costs far more than using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** "Saturday, 2026-11-28, 18:10 (Europe/Berlin, UTC+01:00)", to be read by people and models alike. */
export function writtenMoment(second: number, zone: string): string {
  const parts = formatterFor(zone).formatToParts(second * 1_000);
  const { weekday, year, month, day, hour, minute, timeZoneName } = Object.fromEntries(
    parts.map(({ type, value }) => [type, value]),
  );
  const where = zone === "UTC" ? zone : `${zone}, ${timeZoneName?.replace("GMT", "UTC")}`;
  return `${weekday}, ${year}-${month}-${day}, ${hour}:${minute} (${where})`;
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
