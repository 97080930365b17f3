import type { LinkGuard } from "../../mail/writing/markdown.ts";

/** Properties that only inform. Others can fetch, call programs or hold whole pages. */
const CALENDAR = new Set(
  "BEGIN END VERSION PRODID CALSCALE UID DTSTAMP DTSTART DTEND DUE DURATION SUMMARY DESCRIPTION LOCATION STATUS RRULE RDATE EXDATE RECURRENCE-ID SEQUENCE CREATED LAST-MODIFIED CATEGORIES CLASS PRIORITY TRANSP GEO TZID TZNAME TZOFFSETFROM TZOFFSETTO ORGANIZER ATTENDEE COMMENT CONTACT PERCENT-COMPLETE COMPLETED ACTION TRIGGER REPEAT X-WR-CALNAME X-WR-TIMEZONE".split(
    " ",
  ),
);
const CARD = new Set(
  "BEGIN END VERSION PRODID FN N NICKNAME ORG TITLE ROLE TEL EMAIL ADR LABEL BDAY ANNIVERSARY GENDER NOTE CATEGORIES REV UID KIND LANG TZ GEO".split(
    " ",
  ),
);
const PEOPLE = new Set(["ORGANIZER", "ATTENDEE", "EMAIL"]);
/** Octets of a line without its end (RFC 5545 §3.1, RFC 6350 §3.2). */
const LINE_OCTETS = 75;

/**
 * Returns a calendar whose entries only inform: nothing is fetched, nobody new is invited, and alarms only show text.
 */
export function harmlessCalendar(text: string, guard: LinkGuard): string {
  return fold(withoutAlarms(unfold(text)).flatMap((line) => safeLine(line, CALENDAR, guard)));
}

/** Returns a contact card without pictures, keys and URLs. */
export function harmlessCard(text: string, guard: LinkGuard): string {
  return fold(unfold(text).flatMap((line) => safeLine(line, CARD, guard)));
}

function unfold(text: string): string[] {
  return text
    .replaceAll(/(?:\r\n|\r|\n)[ \t]/g, "")
    .split(/\r\n|\r|\n/)
    .filter((line) => line.trim() !== "");
}

/** Returns a calendar without the alarms that run a program or send a mail. */
function withoutAlarms(lines: string[]): string[] {
  const kept: string[] = [];
  let alarm: string[] | undefined;
  for (const line of lines) {
    if (/^BEGIN:VALARM\s*$/i.test(line)) alarm = [];
    (alarm ?? kept).push(line);
    if (alarm === undefined || !/^END:VALARM\s*$/i.test(line)) continue;
    if (alarm.some((entry) => /^ACTION:DISPLAY\s*$/i.test(entry))) kept.push(...alarm);
    alarm = undefined;
  }
  return kept;
}

function safeLine(line: string, allowed: Set<string>, guard: LinkGuard): string[] {
  const [, name = "", parameters = "", value = ""] =
    /^(?:[\w-]{1,60}\.)?([\w-]{1,60})((?:;[^:"]*(?:"[^"]*"[^:"]*)*)?):(.*)$/.exec(line) ?? [];
  const property = name.toUpperCase();
  if (!allowed.has(property) || /VALUE=(?:URI|BINARY)|ENCODING=B/i.test(parameters)) return [];
  if (PEOPLE.has(property))
    return guard.keeps(mailOf(value)) ? [`${name}${plainParameters(parameters)}:${value}`] : [];
  // A UID is never shown, and may look like a mail address.
  const words = property === "UID" ? value : cleanWords(value, guard);
  return [`${name}${plainParameters(parameters)}:${words}`];
}

function mailOf(value: string): string {
  return /^mailto:/i.test(value) ? value.trim() : `mailto:${value.trim()}`;
}

/** Removes parameters with a URL, such as ALTREP and DIR. */
function plainParameters(parameters: string): string {
  return [...parameters.matchAll(/;([\w-]+)=((?:"[^"]*"|[^;"])*)/g)]
    .filter(([, , value = ""]) => !/:|\/\//.test(value))
    .map(([whole]) => whole)
    .join("");
}

/**
 * Cleans the links of a text value. Its line ends are written `
 * `, which must not become part of a URL.
 */
function cleanWords(value: string, guard: LinkGuard): string {
  return value
    .split(/(\\[nN,;])/)
    .map((part) => (/^\\[nN,;]$/.test(part) ? part : guard.clean(part)))
    .join("");
}

function fold(lines: string[]): string {
  return lines.map((line) => `${foldLine(line)}\r\n`).join("");
}

function foldLine(line: string): string {
  const parts: string[] = [];
  let part = "";
  let octets = 0;
  for (const char of line) {
    const size = Buffer.byteLength(char);
    if (octets + size > LINE_OCTETS) {
      parts.push(part);
      part = " ";
      octets = 1;
    }
    part += char;
    octets += size;
  }
  return [...parts, part].join("\r\n");
}
