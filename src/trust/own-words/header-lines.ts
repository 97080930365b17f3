import {
  bothEnds,
  DATE_OR_TIME,
  MAIL_ADDRESS,
  mayBeWrapped,
  plain,
  tidied,
  TWO_OF_THEM,
} from "./marker-lines.ts";

const HEADER_BLOCK_LINES = 8;
/** Lines that a broken name may take. */
const MAX_NAME_LINES = 150;
const NOTES_HEAD_LINES = 12;
const BARE_BLOCK_LINES = 5;

/** "Label: value" in any language; the colon in `https://` is none. */
const HEADER_LINE = /^\p{L}[\p{L}\p{M} .-]{0,24}\s*:(?!\/\/)\s*\S/u;
/** A separator line, with or without a title, or a quoted line. */
const BEGINS_QUOTE = /^\**([-_=]{3}|>)/;
const FROM_LABEL =
  /^(from|von|de|da|van|fra|från|lähettäjä|od|от( кого)?|від|kimden|feladó|από|expéditeur|mittente|remitente|remetente|afzender|afsender|avsender|avsändare|nadawca|odesílatel|отправитель|差出人|送信者|从|從|[发發]信人?|发件人|寄件者|寄件人|보낸 ?사람|발신[자인]?|מאת|من)$/;
const OTHER_LABEL =
  /^(sent|date|to|cc|subject|reply-to|gesendet|datum|an|betreff|kopie|envoyé|à|objet|enviad[oa]( el)?|fecha|para|asunto|inviato|data|a|oggetto|verzonden|aan|onderwerp|assunto|wysłano|do|temat|skickat|till|ämne|sendt|til|emne|dato|lähetetty|päivämäärä|päiväys|vastaanottaja|aihe|odesláno|komu|předmět|datum|отправлено|дата|кому|тема|送信日時|日時|日付|宛先|件名|发送时间|日期|时间|至|收信人?|收件人|主题|主題|抄送|副本|傳送時間|寄件日期|收件者|主旨|보낸 ?날짜|날짜|받는 ?사람|수신[자인]?|참조|제목|gönderme tarihi|kime|konu|תאריך|אל|נושא)$/;
/** A label of Notes, without a colon: alone on its line, or in a column of its own. */
const COLUMN = /^(.{1,20}?)(\s{2,}\S|$)/;
/** "Eve ---03.05.2024 10:00:00---Dear Ada, …" of Notes, above a header block. */
const NOTES_TITLE = /---\p{Nd}{1,4}[./-][\p{Nd}./:,\s-]{4,30}([ap]\.?m\.?)?(\s[a-z]{1,5})?---/iu;
/** A line with only a date, a time or both, as older Notes versions write below a name. */
const BARE_DATE = /^\p{Nd}[\p{Nd}./:,\s-]{5,30}([ap]\.?m\.?)?$/u;
/** "Eve Evil/ACME on 05/03/2024 10:00:00 AM", below which fields stand. */
const NAME_ON_DATE =
  /^\S.{0,80} on \p{Nd}{1,4}([./-])\p{Nd}{1,2}\1\p{Nd}{2,4} \p{Nd}{1,2}[:.]\p{Nd}{2}[\p{Nd}:. a-z]{0,12}$/iu;
/** A time with seconds, which nobody writes by hand. */
const TO_THE_SECOND = /\p{Nd}{1,2}[:.]\p{Nd}{2}[:.]\p{Nd}{2}[ apm.]{0,5}$/iu;
const TIME_OF_DAY = /\p{Nd}{1,2}[:.]\p{Nd}{2}/u;
/** "3.5.2024", whose parts are not a time. */
const DOTTED_DAY = /\p{Nd}{1,2}\.\p{Nd}{1,2}\.\p{Nd}{4}/gu;
/** Words for oneself: the author of such a "From:" is the sender. */
const ONESELF = /^(?:me|myself|us|ich|mir|uns|moi|nous|yo|mí|io|noi|eu|ik|mij)$/i;
/** A bare time, as in "From: 12:30", which is a period and not a sender. */
const ONLY_TIME = /^\p{Nd}[\p{Nd}:.\s]{0,10}(?:uhr|[ap]\.?m\.?|h)?$/iu;

/**
 * Returns whether a header block begins here: "From: … Sent: … To: … Subject: …" in any order, with or without empty
 * lines; known fields, or lines like fields. A `fresh` mail (neither reply nor forward) may be about a journey or a
 * project, so there the fields have to be those of a mail.
 */
export function headerBlockAt(
  lines: readonly string[],
  at: number,
  fresh: boolean,
): "known" | "alike" | null {
  const line = bothEnds(lines[at] ?? "");
  const first = labelOf(line);
  if (first === null)
    return opensUnknownBlock(lines, at, fresh) ? (hasAuthor(lines, at) ? "known" : "alike") : null;
  if (first === "from" && (MAIL_ADDRESS.test(line) || hasOtherLabel(line))) return "known";
  const block = blockAt(lines, at, first);
  const known = knownFields(block, fresh);
  if (known !== null) return known;
  return !fresh && (isDatedBlock(block) || opensUnknownBlock(lines, at, fresh)) ? "alike" : null;
}

/**
 * Returns the lines of a block. A program may have broken the author's name, which can be arbitrarily long, into many
 * lines; these are left out.
 */
function blockAt(lines: readonly string[], at: number, first: "from" | "other"): string[] {
  if (first !== "from") return lines.slice(at, at + HEADER_BLOCK_LINES);
  const block: string[] = [];
  const end = Math.min(lines.length, at + MAX_NAME_LINES);
  for (let line = at; line < end && block.length < HEADER_BLOCK_LINES; line += 1) {
    const text = lines[line] ?? "";
    if (line === at || labelOf(text) !== null || !mayBeWrapped(lines, line)) block.push(text);
  }
  return block;
}

/** Returns whether a field in a known language names an author with address. */
function hasAuthor(lines: readonly string[], at: number): boolean {
  return lines.slice(at, at + 4).some((line) => labelOf(line) === "from" && MAIL_ADDRESS.test(line));
}

/**
 * Returns how sure the fields are those of a mail. In a mail that is no reply, fields without an author's address may
 * be about something else.
 */
function knownFields(block: string[], fresh: boolean): "known" | "alike" | null {
  if (!hasKnownFields(block, fresh)) return null;
  return !fresh || hasAddressedAuthor(block) ? "known" : "alike";
}

function hasKnownFields(block: string[], fresh: boolean): boolean {
  const kinds = new Set(block.map(labelOf));
  if (!kinds.has("from") || !kinds.has("other")) return false;
  return !fresh || hasFieldsOfMail(block);
}

/**
 * Returns whether the fields may be those of a mail: an author, and an address or a time in one of them. An appointment
 * has a time in place of the author.
 */
function hasFieldsOfMail(block: string[]): boolean {
  const fields = fieldsIn(block);
  const has_author = fields.some(
    ({ label, value }) => FROM_LABEL.test(label) && !ONLY_TIME.test(value) && !ONESELF.test(value),
  );
  return (
    has_author &&
    fields.some(
      ({ value }) => MAIL_ADDRESS.test(value) || TIME_OF_DAY.test(value.replaceAll(DOTTED_DAY, " ")),
    )
  );
}

/** Returns whether the author has an address, which proves that these are a mail's fields. */
function hasAddressedAuthor(block: string[]): boolean {
  return fieldsIn(block).some(({ label, value }) => FROM_LABEL.test(label) && MAIL_ADDRESS.test(value));
}

/** Returns the fields of a block; a value may be on the line below its label. */
function fieldsIn(block: string[]): { label: string; value: string }[] {
  return block.flatMap((line, index) => {
    if (labelOf(line) === null) return [];
    const [, label = "", value = ""] = /^([^:：]*)[:：](.*)$/su.exec(line) ?? [];
    return [{ label: plainLabel(label), value: value.trim() || (block[index + 1] ?? "").trim() }];
  });
}

/**
 * Returns whether a block without colons begins here: "From Eve <eve@example.com>", "To …", "Subject …", each on its
 * own line. Without an address (a journey has none either) it is a mail's header only in a reply, and with a time in a
 * field.
 */
export function opensBareBlock(lines: readonly string[], at: number, fresh: boolean): boolean {
  const [line = "", ...below] = lines.slice(at, at + BARE_BLOCK_LINES);
  if (!FROM_LABEL.test(firstWord(line))) return false;
  const others = below.filter((one) => OTHER_LABEL.test(firstWord(one)));
  if (others.length < 2) return false;
  return MAIL_ADDRESS.test(bothEnds(line)) || (!fresh && others.some((one) => TIME_OF_DAY.test(one)));
}

function firstWord(line: string): string {
  return plain(line).split(/\s/, 1)[0] ?? "";
}

/** Returns whether a table of mail header fields begins here. */
export function opensTableOfFields(lines: readonly string[], at: number): boolean {
  return lines.slice(at, at + 2).filter((line) => isFieldName(line.split("|", 2)[1] ?? "")).length === 2;
}

function isFieldName(text: string): boolean {
  const name = plain(text);
  return FROM_LABEL.test(name) || OTHER_LABEL.test(name);
}

/**
 * Returns where the block that begins with line `at` begins in its paragraph: a name in a field above may be
 * arbitrarily long, and wrapped.
 */
export function headerBlockTop(lines: readonly string[], top: number, at: number): number {
  const first = lines.slice(top, at).findIndex(isField);
  return first === -1 ? at : top + first;
}

/** Returns whether a block has date and recipient without an author. */
function isDatedBlock(block: string[]): boolean {
  const fields = block.filter((line) => labelOf(line) !== null);
  return fields.length > 1 && fields.some((line) => TIME_OF_DAY.test(line) && DATE_OR_TIME.test(line));
}

/**
 * Returns whether a header block in an unknown language begins here: three of four lines are fields, with an address or
 * a date, or both.
 */
function opensUnknownBlock(lines: readonly string[], at: number, fresh: boolean): boolean {
  if (!isField(lines[at] ?? "")) return false;
  const block = lines.slice(at, at + HEADER_BLOCK_LINES);
  const other = block.findIndex(
    (line, index) => BEGINS_QUOTE.test(line) || (index > 0 && opensAnother(block, index, fresh)),
  );
  const fields = block
    .slice(0, other === -1 ? undefined : other)
    .filter((line) => line !== "")
    .slice(0, 4)
    .filter(isField);
  const signs = [MAIL_ADDRESS, DATE_OR_TIME].filter((sign) => fields.some((line) => sign.test(line)));
  return fields.length >= 3 && signs.length > (fresh ? 1 : 0);
}

/**
 * Returns whether an empty line separates a block in a known language from lines that only look like fields, such as
 * "Tel: …" of a signature.
 */
function opensAnother(block: string[], index: number, fresh: boolean): boolean {
  const is_parted = block[index - 1] === "" && labelOf(block[index] ?? "") === "from";
  return is_parted && hasKnownFields(block.slice(index), fresh);
}

function isField(line: string): boolean {
  return line.includes(":") && HEADER_LINE.test(withoutStars(line));
}

/** Returns a line without the asterisks of bold text. */
function withoutStars(line: string): string {
  return plain(line).replaceAll("*", "");
}

function labelOf(line: string): "from" | "other" | null {
  const colon = line.slice(0, 60).search(/[:：]/);
  if (colon === -1) return null;
  const label = plainLabel(line.slice(0, colon));
  if (FROM_LABEL.test(label)) return "from";
  return OTHER_LABEL.test(label) ? "other" : null;
}

function plainLabel(label: string): string {
  return plain(label)
    .replace(/(?<!\*)\*+$/, "")
    .trim();
}

/** Returns whether several fields are on one line: "From: … Sent: … To: …". */
function hasOtherLabel(line: string): boolean {
  const words = tidied(line).split(/\s+/);
  return words.some((word) => /[:：]$/.test(word) && OTHER_LABEL.test(word.slice(0, -1)));
}

/**
 * Returns whether the header of a replied-to mail by Notes begins here: the first words in one line, then its author
 * and a bare date, or both on one line.
 */
export function opensNotesHead(lines: readonly string[], at: number, fresh: boolean): boolean {
  const [line = "", next = ""] = lines.slice(at, at + 2);
  if (NOTES_TITLE.test(`${line} ${next}`)) return true;
  if (line.includes(" on ") && NAME_ON_DATE.test(line))
    return hasFieldsBelow(lines, at) || (!fresh && TO_THE_SECOND.test(line));
  return standsAboveDate(lines, at);
}

/** Returns whether a bare date follows a line and fields follow that, or the line has an address. */
function standsAboveDate(lines: readonly string[], at: number): boolean {
  const [line = "", ...below] = lines.slice(at, at + 3);
  const date = below.map(plain).find((text) => text !== "") ?? "";
  if (!BARE_DATE.test(date)) return false;
  if (/[>)]$/.test(line) && MAIL_ADDRESS.test(bothEnds(line))) return true;
  // A telephone number may look like a date, and also precede fields.
  return hasColumnsBelow(lines, at) || (TWO_OF_THEM.test(date) && hasFieldsBelow(lines, at));
}

function hasFieldsBelow(lines: readonly string[], at: number): boolean {
  return lines.slice(at + 1, at + HEADER_BLOCK_LINES).filter((line) => labelOf(line) === "other").length > 1;
}

/** Returns whether "To", "cc" and "Subject" follow in a column of their own. */
function hasColumnsBelow(lines: readonly string[], at: number): boolean {
  const labels = lines
    .slice(at + 1, at + NOTES_HEAD_LINES)
    .map((line) => COLUMN.exec(line)?.[1] ?? "")
    .filter((label) => OTHER_LABEL.test(plain(label)));
  return labels.length > 1;
}
