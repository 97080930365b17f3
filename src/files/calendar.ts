import ICAL from "ical.js";
import { counted, type Extract, type FileToRead, MAX_FILE_CHARS } from "./reading.ts";
import { decodeText } from "./text.ts";
import { MB } from "../lib/sizes.ts";

const MAX_CALENDAR_BYTES = 4 * MB;
const KINDS: Record<string, string> = { vevent: "Event", vtodo: "Task", vjournal: "Note" };
/** Properties of an entry (RFC 5545 §3.8) in the order in which they are shown, with their labels. */
const FIELDS: Record<string, string> = {
  summary: "What",
  dtstart: "Start",
  dtend: "End",
  due: "Due",
  duration: "Duration",
  rrule: "Repeats",
  exdate: "Except",
  location: "Where",
  organizer: "Organizer",
  attendee: "Attendee",
  status: "Status",
  url: "Link",
  description: "Description",
};

/** Returns the entries of a calendar file as text; a malformed file is shown as it is. */
export function readCalendar(file: FileToRead): Extract {
  const raw = decodeText(file, MAX_CALENDAR_BYTES);
  const entries = entriesOf(raw);
  if (entries === undefined) return { text: raw };
  const shown: string[] = [];
  let chars = 0;
  for (const entry of entries) {
    if (chars > MAX_FILE_CHARS) break;
    const text = entryText(entry);
    shown.push(text);
    chars += text.length;
  }
  return { text: shown.join("\n\n"), extent: counted(entries.length, "entry", "entries") };
}

function entriesOf(raw: string): ICAL.Component[] | undefined {
  try {
    const parsed: unknown[] = ICAL.parse(raw);
    // ical.js returns several calendars as a list of them, and a single one as itself.
    const calendars = (typeof parsed[0] === "string" ? [parsed] : parsed) as (string | unknown[])[][];
    return calendars
      .flatMap((calendar) => new ICAL.Component(calendar).getAllSubcomponents())
      .filter(({ name }) => name in KINDS);
  } catch {
    return undefined;
  }
}

function entryText(entry: ICAL.Component): string {
  const lines = Object.entries(FIELDS).flatMap(([name, label]) =>
    entry.getAllProperties(name).map((property) => `${label}: ${valueOf(property)}`),
  );
  return [`${KINDS[entry.name]}:`, ...lines].join("\n");
}

function valueOf(property: ICAL.Property): string {
  const zone = property.getFirstParameter("tzid");
  const name = property.getFirstParameter("cn");
  const answer = property.getFirstParameter("partstat");
  const value = plainValue(property);
  const who = name ? `${name} <${value.replace(/^mailto:/i, "")}>` : value;
  return [who, zone && `(${zone})`, answer && `(${answer.toLowerCase()})`].filter(Boolean).join(" ");
}

/** Returns a value of the wrong type as it was written. */
function plainValue(property: ICAL.Property): string {
  try {
    return property.getValues().map(String).join(", ");
  } catch {
    return property.jCal.slice(3).map(String).join(", ");
  }
}
