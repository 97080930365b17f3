import {
  type Attribution,
  attributionAbove,
  attributionAt,
  attributionWithout,
  endsInVerb,
} from "./attribution.ts";
import {
  headerBlockAt,
  headerBlockTop,
  opensBareBlock,
  opensNotesHead,
  opensTableOfFields,
} from "./header-lines.ts";
import { isNote, opensScanNote } from "./scan-notes.ts";
import { bothEnds, MAIL_ADDRESS, MAX_MARKER_CHARS, mayBeWrapped, plain, tidied } from "./marker-lines.ts";

/**
 * The mark of a quoted line: ">", a bar or a colon, maybe behind initials or a name ("JH> ", "Tim>") or another mark
 * ("&> "). An arrow is not one.
 */
const QUOTED =
  /^([\p{L}\p{N}][\p{L}\p{M}\p{N}.'_-]{0,19}(?=>+(\s|$))|[^\p{L}\p{N}\s<=-]{1,2} ?(?=>))?>|^[|¦│┃]|^[:»›](\s|$)/u;
const BARE_MARK = /^[\p{L}\p{N}.]{0,20}[>|:¦│┃»›\s]+$/u;
/**
 * Other marks that people put before quoted lines: "--]", "=>", "+". They may begin a line of a list or of source code
 * as well.
 */
const OTHER_MARK = /^([^\p{L}\p{N}\s]{0,3}[>\])+])(\s|\p{L}|$)/u;
const SIGNATURE_DASHES = /^(--|—)$/;
/** A line that repeats one character; not three dots, and not the backticks around source code. */
const RULE = /^(([^\p{L}\p{N}\s.`])(\s?\2){2,}|[—–─_]{2,})$/u;
/** Three characters separate sections of a text; in a mail that is no reply that is all they do. */
const SECTION_RULE = /^([^\p{L}\p{N}\s_])(\s?\1){2}$/u;
/** The backticks above and below source code. */
const FENCE = /^```[\w+#.-]{0,20}$/;
/** "-----Original Message-----" in any language. */
const TITLED_RULE = /^(8<)?[-_=*~+#─━—–―−]{3,} ?[^-_=*~+#─━—–―−].*[^-_=*~+#─━—–―−] ?[-_=*~+#─━—–―−]{3,}>?$/u;
/** A separator line with title, followed by the first field, from programs that drop line ends. */
const TITLE_AND_FIELD =
  /^(8<)?[-_=*~+#─━—–―−]{3,} ?[^-_=*~+#─━—–―−].{0,60}?[-_=*~+#─━—–―−]{3,} ?\p{L}[\p{L}\p{M} .-]{0,24}[:：]/u;
const OPENING_RULE = /^(8<)?[-_=*~+#─━—–―−]{3,} ?/u;
const ORIGINAL_MESSAGE = /^original message\b/;
/** Titles of forwarded mails, and the line of `git request-pull` above titles of commits, which their authors chose. */
const FORWARD_TITLE =
  /^(the following changes since commit [\da-f]{7}|begin (of )?forwarded|-?original message-?$|forwarded message|original mail|anfang der weitergeleiteten|ursprüngliche nachricht|weitergeleitete nachricht|début du message|message (d'origine|transféré|original)|inicio del mensaje|mensaje (original|reenviado)|inizio (del )?messaggio|messaggio (originale|inoltrato)|begin doorgestuurd|oorspronkelijk bericht|doorgestuurd bericht|início da mensagem|mensagem (original|encaminhada)|vidarebefordrat|ursprungligt meddelande|videresendt|opprinnelig melding|start på videresendt|oprindelig (besked|meddelelse)|välitetty viesti|alkuperäinen viesti|początek przek|wiadomość (oryginalna|przekazana)|oryginalna wiadomość|začátek přepos|původní zpráva|přeposlaná zpráva|начало (переадресованного|пересылаемого)|пересылаемое сообщение|исходное сообщение|転送されたメッセージ|元のメッセージ|以下は転送|開始轉寄|以下是轉寄|下面是被转发|开始转发|原始邮件|原始郵件|转发的邮件|전달된 메시지|원본 메시지)/;
const SENT_FROM =
  /^(sent (from|via|with|using) |get outlook for (?:ios|android|mac|windows)\s*(?:$|[<([]|https?:)|get bluemail|von meinem .*gesendet|gesendet (von|mit|über|aus) |diese nachricht wurde von mein|envoyé (de|depuis|à partir|avec) |(obtenir|télécharger|obtener|obter|scarica|hämta|hent|hanki|pobierz|скачать) outlook|outlook (voor|für|pour|para|per) |enviado (desde|do|de|com|a partir) |inviato (da|dal|con) |(verzonden|verstuurd) (vanaf|met|via) |skickat från |sendt fra |lähetetty |wysłan[eo] z |odesláno z|odoslané z|отправлено (с|из) |надіслано з |trimis de pe |elküldve |発自|发自我的|發自我的|寄自我的|[从從]我的.*[发發傳]|나의 .*에서 보)|から送信$/;

/** Returns whether a line is what a mail program or a virus scanner writes about itself: "Sent from my phone". */
export function isOfProgram(line: string): boolean {
  const text = plain(line);
  return SENT_FROM.test(text) || isNote(text);
}

/** How many empty lines may stand between an attribution and its quote. */
const MAX_EMPTY_LINES = 3;
/** How often a line is examined as the end of a broken attribution, on average. */
const MAX_SEARCHES = 10;
/** How much the length of an underline may differ from its heading. */
const MAX_UNDERLINE_GAP = 3;
/** How far source code may reach from a separator line inside it. */
const MAX_FENCED_LINES = 60;
/** Lines within which a mark alone on its line is searched. */
const MAX_MARKED_LINES = 40;

/** A place where own words end; `line` is the first line that is not the sender's own. */
export type Marker =
  | { kind: "signature"; line: number }
  /**
   * `quote` is the first quoted line, and `attributed` whether an attribution may precede it. `touched`: own words may
   * be in the paragraph of the attribution.
   */
  | { kind: "quote"; line: number; quote: number; attributed: boolean; touched: boolean }
  /** Text of others without marked lines: nothing shows its end. */
  | ({ kind: "forward" } & Forward);

interface Forward {
  line: number;
  /** The only evidence, if it might be the sender's own: a separator line, one with a title, or lines like fields. */
  by: "line" | "title" | "fields" | null;
}

/** Returns whether a trimmed line is marked as quoted. */
export function isQuoted(line: string): boolean {
  return QUOTED.test(plain(line));
}

/** Returns whether a quoted line has nothing behind its marks. */
export function isBareMark(line: string): boolean {
  return BARE_MARK.test(line);
}

/**
 * Returns the first quote, forward or signature from line `from` on; lines are trimmed. A doubtful line counts as a
 * marker, because text above a marker may be obeyed. `fresh`: the mail is neither reply nor forward, so fewer lines are
 * doubtful.
 */
export function firstMarker(
  lines: readonly string[],
  { from = 0, fresh = false }: { from?: number; fresh?: boolean } = {},
): Marker | null {
  let top = from;
  for (let line = from; line < lines.length; line += 1) {
    if (plain(lines[line] ?? "") === "") {
      top = line + 1;
      continue;
    }
    const marker = markerAt(lines, line, { from, top, fresh });
    if (marker !== null) return marker;
  }
  return null;
}

interface Place {
  from: number;
  /** Where the paragraph of the current line begins. */
  top: number;
  fresh: boolean;
}

function markerAt(lines: readonly string[], line: number, place: Place): Marker | null {
  const marker = markAt(lines, line, place);
  return marker && (attributionAround(lines, line, marker, place) ?? marker);
}

function markAt(lines: readonly string[], line: number, place: Place): Marker | null {
  const text = plain(lines[line] ?? "");
  if (SIGNATURE_DASHES.test(text) || SENT_FROM.test(text) || opensNote(lines, line))
    return { kind: "signature", line };
  if (isMarked(lines, line, place.fresh)) return quoteAt(lines, line, place.from);
  const forward = forwardAt(lines, line, place);
  if (forward !== null) return { kind: "forward", ...forward };
  const attribution = attributionAt(lines, line, place);
  return attribution && quoteBelow(lines, attribution);
}

/** Returns whether a note of a virus scanner or gateway begins or ends with a line. */
export function opensNote(lines: readonly string[], line: number): boolean {
  let next = line + 1;
  while (next < lines.length && plain(lines[next] ?? "") === "") next += 1;
  const below = next < lines.length ? plain(lines[next] ?? "") : undefined;
  return opensScanNote(plain(lines[line] ?? ""), below);
}

/** Returns whether a line is quoted. In a mail that is no reply, table rows and lines that begin alike are not. */
function isMarked(lines: readonly string[], line: number, fresh: boolean): boolean {
  const text = plain(lines[line] ?? "");
  if (QUOTED.test(text)) return !(fresh && isTableRow(text) && !opensTableOfFields(lines, line));
  return !fresh && isMarkedAlike(lines, line);
}

/** Returns whether a line is a table row: bars at both ends and between cells. */
function isTableRow(text: string): boolean {
  return text.startsWith("|") && text.endsWith("|") && text.split("|").length > 3;
}

function forwardAt(lines: readonly string[], line: number, { from, top, fresh }: Place): Forward | null {
  const title = titleOf(ways(lines[line] ?? ""));
  if (title !== null) return { line, by: title === "known" ? null : "title" };
  if (opensNotesHead(lines, line, fresh)) return { line: top, by: null };
  if (opensBareBlock(lines, line, fresh)) return { line, by: null };
  const block = headerBlockAt(lines, line, fresh);
  if (block !== null) {
    const head = headerBlockTop(lines, top, line);
    return { line: attributionWithout(lines, top, head) ?? head, by: block === "known" ? null : "fields" };
  }
  return isRule(lines, line, fresh) && !isFenced(lines, line, { from, fresh }) ? { line, by: "line" } : null;
}

/** Returns whether a line is a known title of a quoted or forwarded mail, or looks like one; null if it does not. */
function titleOf(texts: string[]): "known" | "alike" | null {
  if (texts.some((text) => FORWARD_TITLE.test(text))) return "known";
  const ruled = texts.filter((text) => OPENING_RULE.test(text));
  if (ruled.length === 0) return null;
  const holds_field = ruled.some((text) => TITLE_AND_FIELD.test(text));
  if (ruled.some(opensWithTitle) || (holds_field && texts.some((text) => MAIL_ADDRESS.test(text))))
    return "known";
  return holds_field || ruled.some((text) => TITLED_RULE.test(text)) ? "alike" : null;
}

function opensWithTitle(text: string): boolean {
  const title = text.replace(OPENING_RULE, "");
  return FORWARD_TITLE.test(title) || ORIGINAL_MESSAGE.test(title);
}

/**
 * Returns the quote at a line. Some programs break an attribution so that its rest looks like a quoted line: ">
 * wrote:".
 */
function quoteAt(lines: readonly string[], line: number, from: number): Marker {
  const { start, touched } = attributionAbove(lines, line, from);
  if (start < line && endsInVerb(plain(lines[line] ?? "")))
    return quoteBelow(lines, { start, end: line + 1, touched });
  return { kind: "quote", line: start, quote: line, attributed: start < line, touched };
}

/**
 * Returns the attribution that surrounds a mark: a correspondent chooses the name in it, so that its broken lines may
 * look like any mark.
 */
function attributionAround(
  lines: readonly string[],
  line: number,
  marker: Marker,
  { top, fresh }: Place,
): Marker | null {
  if (top === line || !mayBeWrapped(lines, line)) return null;
  for (let last = line; last < lines.length && lines[last] !== ""; last += 1) {
    const found = attributionAt(lines, last, { top, fresh });
    if (found !== null && found.start < marker.line) return quoteBelow(lines, { ...found, touched: true });
    if (isSearchedEnough(lines)) return quoteBelow(lines, { start: top, end: last + 1, touched: true });
  }
  return null;
}

const searched = new WeakMap<readonly string[], number>();

/** Returns whether the search has to stop, where very many lines look like marks; what is doubtful then is not own. */
function isSearchedEnough(lines: readonly string[]): boolean {
  const count = (searched.get(lines) ?? 0) + 1;
  searched.set(lines, count);
  return count > MAX_SEARCHES * lines.length;
}

function quoteBelow(lines: readonly string[], { start, end, touched }: Attribution): Marker {
  let quote = end;
  while (quote < end + MAX_EMPTY_LINES && (lines[quote] ?? "") === "") quote += 1;
  return { kind: "quote", line: start, quote, attributed: true, touched };
}

/** Returns the beginning of a line, and both ends if it is long. */
function ways(line: string): string[] {
  return line.length <= MAX_MARKER_CHARS ? [plain(line)] : [plain(line), tidied(bothEnds(line))];
}

/**
 * Returns whether a line is a separator of a quote; in a mail that is no reply it may separate sections or underline a
 * heading.
 */
function isRule(lines: readonly string[], line: number, fresh: boolean): boolean {
  const text = lines[line] ?? "";
  if (/[\p{L}\p{N}]/u.test(text) || !ways(text).some((way) => RULE.test(way))) return false;
  if (!fresh) return true;
  const above = line === 0 ? "" : (lines[line - 1] ?? "");
  const underlines =
    Math.abs(above.length - text.length) <= MAX_UNDERLINE_GAP && /[\p{L}\p{N}]$/u.test(above);
  return !SECTION_RULE.test(plain(text)) && !underlines;
}

/** Returns whether a line is in source code between backticks, in a mail that nothing else separates. */
function isFenced(lines: readonly string[], line: number, { from, fresh }: Omit<Place, "top">): boolean {
  const fences = lines
    .slice(from, line + MAX_FENCED_LINES)
    .flatMap((text, index) => (FENCE.test(text) ? [from + index] : []));
  const opened = fences.filter((fence) => fence < line);
  const [open, close] = [opened.at(-1), fences[opened.length]];
  if (opened.length % 2 === 0 || open === undefined || close === undefined) return false;
  if (line - open > MAX_FENCED_LINES) return false;
  const inside = lines.slice(open + 1, close).filter((text) => !RULE.test(plain(text)));
  return firstMarker(inside, { fresh }) === null;
}

/**
 * Returns whether lines begin with the same mark of any kind, which also stands alone on a line, as that of a list
 * never does.
 */
function isMarkedAlike(lines: readonly string[], at: number): boolean {
  const mark = OTHER_MARK.exec(lines[at] ?? "")?.[1];
  if (mark === undefined) return false;
  const below = lines.slice(at, at + MAX_MARKED_LINES);
  const end = below.findIndex((line) => !line.startsWith(mark));
  const marked = end === -1 ? below : below.slice(0, end);
  return marked.includes(mark) && marked.some((line) => line !== mark);
}
