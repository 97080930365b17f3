import {
  bothEnds,
  DATE_OR_TIME,
  DATES_AND_TIMES,
  MAIL_ADDRESS,
  MAX_MARKER_CHARS,
  mayBeWrapped,
  TWO_OF_THEM,
} from "./marker-lines.ts";

const MAX_ATTRIBUTION_LINES = 4;
/** How many colons of a line are examined for a quote behind them. */
const MAX_COLONS = 8;
/** Characters within which an attribution that begins with a date has it. */
const OPENING_CHARS = 40;

/** "Quoting Ann <ann@example.com>:" */
const QUOTING = /^(quoting|zitat von|citando|citation de|citát|citerar|citaat van|cytowanie|цитирую) /;
/** "May 3, 2024, 10:00 by ann@example.com:" */
const DAY_AND_AUTHOR =
  /^(\p{L}{3,12}\.? )?\p{Nd}[^@]{0,40}:\p{Nd}{2}( [ap]m)? \p{L}{1,4} [^\s@]{1,100}@[^\s@]{1,100}:$/u;
/** Words that a mail program puts at the end of an attribution, before the colon. */
const WROTE_LAST =
  /(wrote|writes|écrit|escribió|escribio|escreveu|scritto|schreef|schrieb|skrev|kirjoitti|napsala?|napísala?|napisał\(?a?\)?|pisze|пишет|написала?|пише|írta|a scris|έγραψε|yazdı|yazmış|je napisala?|написа|写道|寫道|写了|書きました|のメッセージ|작성|כתבה?|كتبت?|viết|menulis) ?[:：]$/;
const WROTE =
  /(wrote|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|kirjoitti|napsal|napísal|napisał|pisze|пишет|писал|пише|írta|έγραψε|yazdı|yazmış|yazıb|写道|寫道|メッセージ|のメール|napisa[ol]|napisana przez|је написао|напиша|skrifaði|shkroi|kirjutas|rakstīja|rašė|va escriure|ha escrit|ha scrit|escribiu|idatzi|geskryf|skreiv|skreau|skrivet|ysgrifennodd|scríobh|піша|쓴 글|a scris|menulis|viết|жазды|yozdi|نوشت|لکھا|كتب|כתב|წერ|գրել|գրեց|लिखा|লিখেছেন|เขียน)/;
/** Such words at the end of a line without a colon, or with a dash in its place. */
const WROTE_AT_END =
  /((^|\s)(wrote|writes|écrit|escribió|escreveu|scritto|schreef|schrieb|skrev|kirjoitti|napsala?|napísala?|napisał(\(a\)|a)?|написала?|пишет|пише|írta|έγραψε|yazdı)|写道|寫道|写了|書きました|のメッセージ|작성)( ?[-–—]{2,9})?$/;
/** A colon with words, or the mark of a quote, on the same line. */
const COLON_WITHIN = /[:：](?=>|\s+\S)/g;
/** At most three words before the first number of a date: "On Fri, May 3". */
const OPENING_DAY = /^(?:[\p{L}.,]{1,14} ){0,3}\p{Nd}/u;
/** Weaker evidence, which counts only directly above a quote. */
const SAID = /(^|\s)(quoth|said|says|writes)([\s:]|$)/;
const WORDS_BEFORE_DAY =
  /^(.{1,200}?)[\s-](?:on|am|le|op|el|il|em|den|dnia) (?:\p{L}{2,10}[.,]{0,2} ){0,2}\p{Nd}/u;
/** A part of a line in brackets, as addresses are in header fields. */
const BRACKETED = /[<([][^<>()[\]]*[>)\]]/g;
/** An attribution that ends with the name: "2024-05-03 17:21 GMT+01:00 Ann", "2024/5/3 Ann <ann@example.com>". */
const DATED = /^\d{4}[-/]\d{1,2}[-/]\d{1,2} (\d{1,2}:\d{2} gmt[+-]\d{1,2}:\d{2} \S)?/;
/** An address in brackets at the end of a line. */
const ADDRESS_AT_END = /[<([][^<>()[\]\s]{1,200}@[^<>()[\]\s]{1,200}[>)\]]$/;
/** "on 05/03/2024 10:00:00 AM" */
const ON_DATE = /^(?:\p{L}{1,5}[.,]? )?\p{Nd}[\p{Nd}\p{L}.:/,+ -]{7,39}$/u;
/** Words that accompany a date and time and are no name. */
const NO_NAME = /^(gmt|utc|uhr|[a-z]{2,3}t|[ap]\.?m\.?|um|at|à|kl|klo)$/;

/** An attribution ("On … Ann wrote:"): its first line, and the line behind its last. */
export interface Attribution extends Opening {
  end: number;
}

/** The first line of an attribution, and whether own words may be in the lines from there on. */
interface Opening {
  start: number;
  touched: boolean;
}

/**
 * Returns the attribution ("On … Ann <ann@example.com> wrote:") that ends with line `last`, wrapped or not; `top` is
 * the beginning of its paragraph. In a `fresh` mail, which is no reply, a date, an address and a colon prove nothing.
 */
export function attributionAt(
  lines: readonly string[],
  last: number,
  { top, fresh }: { top: number; fresh: boolean },
): Attribution | null {
  const line = bothEnds(lines[last] ?? "");
  const end = last + 1;
  if (fresh && announces(line)) return { start: end, touched: false, end };
  if (!endsAttribution(lines, last, { top, fresh }) && !holdsQuote(line)) return null;
  return { ...openingLine(lines, top, last), end };
}

/**
 * Returns where, in the lines from `top` to `at`, an attribution without a colon begins, as above a header block that
 * repeats it; null if there is none.
 */
export function attributionWithout(lines: readonly string[], top: number, at: number): number | null {
  for (let line = Math.max(top, at - MAX_ATTRIBUTION_LINES); line < at; line += 1) {
    const text = textOf(lines, line, at - 1);
    if (opensWithDay(bothEnds(lines[line] ?? "")) && TWO_OF_THEM.test(text) && WROTE.test(text)) return line;
  }
  return null;
}

/** Returns whether a line (in lower case) ends like an attribution, in any language. */
export function endsInVerb(line: string): boolean {
  return WROTE_LAST.test(line);
}

/** Returns whether a line is the sender's own announcement of a quote: "Translate what the customer wrote:". */
function announces(line: string): boolean {
  if (!endsInVerb(line.toLowerCase()) || isDatedOrAddressed(line)) return false;
  const words = line.split(/\s+/).slice(0, -1);
  return words.length > 2 && words.slice(1).some((word) => /^\p{Ll}/u.test(word));
}

export function isDatedOrAddressed(text: string): boolean {
  return DATE_OR_TIME.test(text) || MAIL_ADDRESS.test(text);
}

function endsAttribution(
  lines: readonly string[],
  end: number,
  { top, fresh }: { top: number; fresh: boolean },
): boolean {
  const last = bothEnds(lines[end] ?? "").toLowerCase();
  const colon = /[:：]$/.test(last);
  // Without a colon, the word for "wrote" is an ordinary one.
  if (!colon && !WROTE_AT_END.test(last)) return !fresh && isDatedName(lines, top, end);
  for (let start = end, joined = ""; start >= top && start > end - MAX_ATTRIBUTION_LINES; start -= 1) {
    joined = `${bothEnds(lines[start] ?? "").toLowerCase()} ${joined}`.trim();
    if (colon ? isAttribution(joined, fresh) : isDated(joined)) return true;
  }
  return colon && !fresh && isOpened(lines, top, end);
}

/**
 * Returns whether the quote begins on the line of its attribution: "On 3 May 2024 at 10:00, Eve <eve@example.com>
 * wrote:> Hi".
 */
function holdsQuote(line: string): boolean {
  const begins = OPENING_DAY.test(line);
  if (!begins && !line.includes("@")) return false;
  const colons = [...line.slice(0, MAX_MARKER_CHARS).matchAll(COLON_WITHIN)].slice(0, MAX_COLONS);
  return colons.some(({ index }) => {
    const above = line.slice(0, index).toLowerCase();
    return isDated(above) && (begins || MAIL_ADDRESS.test(above)) && WROTE.test(above);
  });
}

/** Returns whether lines are a date and a name, in either order, without an ending verb or colon. */
function isDatedName(lines: readonly string[], top: number, end: number): boolean {
  const line = bothEnds(lines[end] ?? "").toLowerCase();
  if (endsInDate(line) || isNameBehindDay(lines, top, end)) return true;
  const dated = DATED.exec(line);
  return dated !== null && (dated[1] !== undefined || isAddress(line.slice(line.lastIndexOf("<"))));
}

/**
 * Returns whether a name follows a date: "Am 03.05.24 um 10:00 schrieb Eve <eve@example.com>", with the address maybe
 * on its own line.
 */
function isNameBehindDay(lines: readonly string[], top: number, end: number): boolean {
  const last = lines[end] ?? "";
  const first = /^[<([]/.test(last) ? Math.max(top, end - 1) : end;
  const text = textOf(lines, first, end);
  if (!ADDRESS_AT_END.test(text)) return false;
  return (opensWithDay(text) && TWO_OF_THEM.test(text)) || (DATE_OR_TIME.test(text) && WROTE.test(text));
}

/** Returns whether a line ends in a date: "Ann <ann@example.com> on 05/03/2024 10:00:00 AM". */
function endsInDate(line: string): boolean {
  const end = line.lastIndexOf(">");
  const behind = line
    .slice(end + 1)
    .replace(/^[\s,;–—-]+/, "")
    .trim();
  if (end === -1 || !ON_DATE.test(behind) || !TWO_OF_THEM.test(behind)) return false;
  return isAddress(line.slice(line.lastIndexOf("<", end), end + 1));
}

function isAddress(text: string): boolean {
  return text.endsWith(">") && text.includes("@");
}

/** Returns whether an attribution opens far above: a name of many lines may separate the date and the verb. */
function isOpened(lines: readonly string[], top: number, end: number): boolean {
  const opening = textOf(lines, top, Math.min(top + 1, end - 1));
  return DATE_OR_TIME.test(opening) && WROTE.test(opening);
}

/**
 * Returns whether a text (in lower case) has a date and a time, or one of these and an address, like an attribution.
 */
export function isDated(text: string): boolean {
  return TWO_OF_THEM.test(text) || (DATE_OR_TIME.test(text) && MAIL_ADDRESS.test(text));
}

function isAttribution(text: string, fresh: boolean): boolean {
  if (endsInVerb(text) || (QUOTING.test(text) && endsInAddress(text)) || DAY_AND_AUTHOR.test(text))
    return true;
  if (!DATE_OR_TIME.test(text)) return !fresh && endsInAddress(text);
  if (endsInAddress(text) || WROTE.test(text)) return true;
  return !fresh && (hasAddressApart(text) || (opensWithDay(text) && MAIL_ADDRESS.test(text)));
}

function hasAddressApart(text: string): boolean {
  return [...text.matchAll(BRACKETED)].some(([bracketed]) => bracketed.includes("@"));
}

/** `<ann@example.com>:` */
function endsInAddress(text: string): boolean {
  const address = text.slice(text.lastIndexOf("<"));
  return address.includes("@") && /> ?[:：]$/.test(address);
}

/**
 * Returns where the attribution begins in the paragraph from `top` to `last`. It contains a name that its owner chose,
 * of any length and wrapped anywhere. So text above it is the sender's own only if the attribution begins with a date,
 * the name follows it, and no mail program would have broken the line there.
 */
function openingLine(lines: readonly string[], top: number, last: number): Opening {
  const paragraph = lines.slice(top, last + 1).map(bothEnds);
  const days = paragraph.flatMap((line, index) => (opensWithDay(line) ? [index] : []));
  const whole = days.filter((index) => index > 0 && beginsWithDayAndTime(paragraph[index] ?? ""));
  const opening = [...days.slice(0, 1), ...whole].find(
    (index) =>
      index > 0 && !mayBeWrapped(lines, top + index) && namesSomebody(paragraph.slice(index).join(" ")),
  );
  if (opening !== undefined)
    return { start: top + opening, touched: hasWordsBeforeDay(paragraph[opening] ?? "") };
  const first = paragraph[0] ?? "";
  // An attribution that begins with the name may be wrapped as well.
  const begins = days[0] === 0 ? !hasWordsBeforeDay(first) : last === top || isDatedOrAddressed(first);
  return { start: top, touched: whole.length > 0 || !begins };
}

/** Returns whether own words precede the date on one line: "reply On Wed, 4 Apr 2012 Ann wrote:". */
function hasWordsBeforeDay(line: string): boolean {
  const before = WORDS_BEFORE_DAY.exec(line.toLowerCase())?.[1];
  return before !== undefined && !WROTE.test(before);
}

function opensWithDay(text: string): boolean {
  return DATE_OR_TIME.test(text.slice(0, OPENING_CHARS).toLowerCase());
}

function beginsWithDayAndTime(line: string): boolean {
  const small = line.toLowerCase();
  return OPENING_DAY.test(small) && TWO_OF_THEM.test(small);
}

/** Returns whether a name or an address follows the last number of the date and time. */
function namesSomebody(text: string): boolean {
  const small = text.toLowerCase();
  const numbers = [...small.matchAll(DATES_AND_TIMES)];
  const { index = 0, 0: date = "" } = numbers.at(-1) ?? {};
  const behind = small.slice(index + date.length).split(/[\s,;"]+/);
  return behind.some((word) => /\p{L}{2}/u.test(word) && !NO_NAME.test(word) && !WROTE.test(word));
}

/**
 * Returns where a quote with its first marked line at `quote` begins, including its attribution: in an unknown language
 * that is still a paragraph with an address or a date.
 */
export function attributionAbove(lines: readonly string[], quote: number, from: number): Opening {
  const none = { start: quote, touched: false };
  const above = lastAbove(lines, quote, from);
  if (above < from || quote - above > MAX_ATTRIBUTION_LINES) return none;
  const top = paragraphTop(lines, above, from);
  const text = textOf(lines, top, above);
  if (!isAttributionAbove(text, quote - above === 1)) return none;
  return text.startsWith("<") ? nameAbove(lines, top, from) : openingLine(lines, top, above);
}

/**
 * Returns where an attribution begins whose address is on its own line: some mail programs leave an empty line between
 * date with name and address.
 */
function nameAbove(lines: readonly string[], address: number, from: number): Opening {
  const none = { start: address, touched: false };
  const above = lastAbove(lines, address, from);
  if (above < from || address - above > MAX_ATTRIBUTION_LINES) return none;
  const top = paragraphTop(lines, above, from);
  return DATE_OR_TIME.test(textOf(lines, top, above)) ? openingLine(lines, top, above) : none;
}

/** Returns the last line above `line` that is not empty. */
function lastAbove(lines: readonly string[], line: number, from: number): number {
  let above = line - 1;
  while (above >= from && (lines[above] ?? "").trim() === "") above -= 1;
  return above;
}

function paragraphTop(lines: readonly string[], at: number, from: number): number {
  let top = at;
  while (top > from && (lines[top - 1] ?? "").trim() !== "") top -= 1;
  return top;
}

function textOf(lines: readonly string[], first: number, last: number): string {
  return lines
    .slice(first, last + 1)
    .map(bothEnds)
    .join(" ")
    .trim()
    .toLowerCase();
}

/**
 * Returns whether a paragraph is an attribution. All of it counts, because a long name can put any distance between the
 * date and the quote.
 */
function isAttributionAbove(text: string, touchesQuote: boolean): boolean {
  if (MAIL_ADDRESS.test(text) || WROTE.test(text) || SAID.test(text)) return true;
  return (touchesQuote || /[:：]$/.test(text) ? DATE_OR_TIME : TWO_OF_THEM).test(text);
}
