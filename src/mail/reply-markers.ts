/** How much of a line is looked at from either end: what stands between may be a name, as long as its bearer likes. */
const MAX_MARKER_CHARS = 400;
const MAX_ATTRIBUTION_LINES = 4;
const HEADER_BLOCK_LINES = 8;

const QUOTED = /^[>＞]/;
const SIGNATURE_DASHES = /^(--|—)$/;
/** A line of one mark, whatever the mark. */
const RULE = /^(([^\p{L}\p{N}\s])(\s?\2){2,}|[—–─]{2,})$/u;
/** "-----Original Message-----" in whatever language. */
const TITLED_RULE = /^[-_=*~+#─━—–―−]{3,} ?[^-_=*~+#─━—–―−].*[^-_=*~+#─━—–―−] ?[-_=*~+#─━—–―−]{3,}$/u;
/** "Eve ---03.05.2024 10:00:00---Dear Ada, …" of Notes, above a header block. */
const NOTES_TITLE = /---\p{Nd}{1,4}[./-][\p{Nd}./:,\s-]{4,30}([ap]\.?m\.?)?(\s[a-z]{1,5})?---/iu;
/** Nothing but a day, a time or both, as older Notes have it below a name. */
const BARE_DATE = /^\p{Nd}[\p{Nd}./:,\s-]{5,30}([ap]\.?m\.?)?$/u;
const FORWARD_TITLE =
  /^(begin (of )?forwarded|original message$|forwarded message|original mail|anfang der weitergeleiteten|ursprüngliche nachricht|weitergeleitete nachricht|début du message|message (d'origine|transféré|original)|inicio del mensaje|mensaje (original|reenviado)|inizio (del )?messaggio|messaggio (originale|inoltrato)|begin doorgestuurd|oorspronkelijk bericht|doorgestuurd bericht|início da mensagem|mensagem (original|encaminhada)|vidarebefordrat|ursprungligt meddelande|videresendt|opprinnelig melding|start på videresendt|oprindelig (besked|meddelelse)|välitetty viesti|alkuperäinen viesti|początek przek|wiadomość (oryginalna|przekazana)|oryginalna wiadomość|začátek přepos|původní zpráva|přeposlaná zpráva|начало (переадресованного|пересылаемого)|пересылаемое сообщение|исходное сообщение|転送されたメッセージ|元のメッセージ|以下は転送|開始轉寄|以下是轉寄|下面是被转发|开始转发|原始邮件|原始郵件|转发的邮件|전달된 메시지|원본 메시지)/;
const SENT_FROM =
  /^(sent (from|via|with|using) |get outlook for |get bluemail|von meinem .*gesendet|gesendet (von|mit|über|aus) |diese nachricht wurde von mein|envoyé (de|depuis|à partir|avec) |(obtenir|télécharger|obtener|obter|scarica|hämta|hent|hanki|pobierz|скачать) outlook|outlook (voor|für|pour|para|per) |enviado (desde|do|de|com|a partir) |inviato (da|dal|con) |(verzonden|verstuurd) (vanaf|met|via) |skickat från |sendt fra |lähetetty |wysłan[eo] z |odesláno z|odoslané z|отправлено (с|из) |надіслано з |trimis de pe |elküldve |発自|发自我的|發自我的|寄自我的|[从從]我的.*[发發傳]|나의 .*에서 보)|から送信$/;

/** Words a mail program puts at the end of its attribution line, before the colon. */
const WROTE_LAST =
  /(wrote|writes|écrit|escribió|escribio|escreveu|scritto|schreef|schrieb|skrev|kirjoitti|napsala?|napísala?|napisał\(?a?\)?|pisze|пишет|написала?|пише|írta|a scris|έγραψε|yazdı|yazmış|je napisala?|написа|写道|寫道|写了|書きました|のメッセージ|작성|כתבה?|كتبت?|viết|menulis) ?[:：]$/;
const WROTE =
  /(wrote|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|kirjoitti|napsal|napísal|napisał|pisze|пишет|писал|пише|írta|έγραψε|yazdı|yazıb|写道|寫道|メッセージ|napisa[ol]|је написао|напиша|skrifaði|shkroi|kirjutas|rakstīja|rašė|va escriure|escribiu|idatzi|a scris|menulis|viết|жазды|yozdi|نوشت|لکھا|كتب|כתב|წერ|գրել|գրեց|लिखा|লিখেছেন|เขียน)/;
/** The same without a colon, or with a rule in its place. */
const WROTE_AT_END =
  /(^|\s)(wrote|writes|écrit|escribió|escreveu|scritto|schreef|schrieb|skrev|написала?|пишет)( ?[-–—]{2,9})?$/;
/** Less sure signs, which count only right above a quote. */
const SAID = /(^|\s)(quoth|said|says|writes)([\s:]|$)/;
const MAIL_ADDRESS = /[^\s<>()[\]]@[^\s<>()[\]]/;
const DATE_OR_TIME =
  /\p{Nd}{1,2}[:.h]\p{Nd}{2}|(19|20)\d{2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]|\p{Nd} ?[年月日년월일]|\p{Nd}{1,2}\.? (jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])/u;
const TWO_OF_THEM = new RegExp(`(${DATE_OR_TIME.source}).*(${DATE_OR_TIME.source})`, "u");
/** "Label: value" in whatever language. */
const HEADER_LINE = /^\p{L}[\p{L}\p{M} .-]{0,24}\s*[:：]\s*\S/u;
const FROM_LABEL =
  /^(from|von|de|da|van|fra|från|lähettäjä|od|от( кого)?|від|kimden|feladó|από|expéditeur|mittente|remitente|remetente|afzender|afsender|avsender|avsändare|nadawca|odesílatel|отправитель|差出人|送信者|从|從|[发發]信人?|发件人|寄件者|寄件人|보낸 ?사람|발신[자인]?|מאת|من)$/;
const OTHER_LABEL =
  /^(sent|date|to|cc|subject|reply-to|gesendet|datum|an|betreff|kopie|envoyé|à|objet|enviad[oa]( el)?|fecha|para|asunto|inviato|data|a|oggetto|verzonden|aan|onderwerp|assunto|wysłano|do|temat|skickat|till|ämne|sendt|til|emne|dato|lähetetty|päivämäärä|päiväys|vastaanottaja|aihe|odesláno|komu|předmět|datum|отправлено|дата|кому|тема|送信日時|日時|日付|宛先|件名|发送时间|日期|时间|至|收信人?|收件人|主题|主題|抄送|副本|傳送時間|寄件日期|收件者|主旨|보낸 ?날짜|날짜|받는 ?사람|수신[자인]?|참조|제목|gönderme tarihi|kime|konu|תאריך|אל|נושא)$/;

export interface Marker {
  /** Index of the first line that is not the sender's own new text. */
  line: number;
  kind: "quote" | "signature";
}

/** The first quote, forward or signature from line `from` on, of lines without blanks at their ends. In doubt a line is a marker: text above one may be obeyed. */
export function firstMarker(lines: readonly string[], from = 0): Marker | null {
  let top = from;
  for (let line = from; line < lines.length; line += 1) {
    if (plain(lines[line] ?? "") === "") {
      top = line + 1;
      continue;
    }
    const marker = markerAt(lines, line, { from, top });
    if (marker !== null) return marker;
  }
  return null;
}

/** `top` is where the paragraph of this line begins. */
function markerAt(
  lines: readonly string[],
  line: number,
  { from, top }: { from: number; top: number },
): Marker | null {
  const text = plain(lines[line] ?? "");
  if (SIGNATURE_DASHES.test(text) || SENT_FROM.test(text)) return { line, kind: "signature" };
  if (QUOTED.test(text)) return { line: attributionAbove(lines, line, from), kind: "quote" };
  if (isTitle(text) || isTitle(tidied(bothEnds(lines[line] ?? "")))) return { line, kind: "quote" };
  const headed = opensNotesHead(lines, line) || opensHeaderBlock(lines, line);
  return headed || endsAttribution(lines, line, top) ? { line: top, kind: "quote" } : null;
}

function plain(line: string): string {
  return tidied(line.slice(0, MAX_MARKER_CHARS));
}

/** Without the stars and spaces that a bold label leaves behind in text made from HTML, and no wide letters. */
function tidied(text: string): string {
  return text
    .normalize("NFKC")
    .trim()
    .replace(/^\*{1,2}(?=\p{L})/u, "")
    .toLowerCase();
}

/** For marks that stand at the beginning and at the end of one line. */
function bothEnds(line: string): string {
  if (line.length <= 2 * MAX_MARKER_CHARS) return line;
  return `${line.slice(0, MAX_MARKER_CHARS)} ${line.slice(-MAX_MARKER_CHARS)}`;
}

function isTitle(text: string): boolean {
  return RULE.test(text) || TITLED_RULE.test(text) || FORWARD_TITLE.test(text);
}

/** "From: … Sent: … To: … Subject: …" in any order, with or without blank lines between. */
function opensHeaderBlock(lines: readonly string[], at: number): boolean {
  const first = labelOf(lines[at] ?? "");
  if (first === null) return opensUnknownBlock(lines, at);
  const line = bothEnds(lines[at] ?? "");
  if (first === "from" && (MAIL_ADDRESS.test(line) || hasOtherLabel(line))) return true;
  const kinds = new Set(lines.slice(at, at + HEADER_BLOCK_LINES).map(labelOf));
  return (kinds.has("from") && kinds.has("other")) || opensUnknownBlock(lines, at);
}

/** A header block in a language we do not know: three of four lines are fields, and one has an address or a date. */
function opensUnknownBlock(lines: readonly string[], at: number): boolean {
  if (!HEADER_LINE.test(plain(lines[at] ?? "").replaceAll("*", ""))) return false;
  const fields = lines
    .slice(at, at + HEADER_BLOCK_LINES)
    .map((line) => plain(line).replaceAll("*", ""))
    .filter((line) => line !== "")
    .slice(0, 4)
    .filter((line) => HEADER_LINE.test(line));
  return fields.length >= 3 && fields.some((line) => MAIL_ADDRESS.test(line) || DATE_OR_TIME.test(line));
}

function labelOf(line: string): "from" | "other" | null {
  const colon = line.slice(0, 60).search(/[:：]/);
  if (colon === -1) return null;
  const label = plain(line.slice(0, colon))
    .replace(/(?<!\*)\*+$/, "")
    .trim();
  if (FROM_LABEL.test(label)) return "from";
  return OTHER_LABEL.test(label) ? "other" : null;
}

/** "From: … Sent: … To: …" on one line. */
function hasOtherLabel(line: string): boolean {
  const words = tidied(line).split(/\s+/);
  return words.some((word) => /[:：]$/.test(word) && OTHER_LABEL.test(word.slice(0, -1)));
}

/** What Notes puts above the mail that is answered: its first words in one line, or its author and a bare date. */
function opensNotesHead(lines: readonly string[], at: number): boolean {
  const [line = "", next = "", second = ""] = lines.slice(at, at + 3);
  if (NOTES_TITLE.test(`${line} ${next}`)) return true;
  const below = plain(next) || plain(second);
  return /[>)]$/.test(line) && MAIL_ADDRESS.test(bothEnds(line)) && BARE_DATE.test(below);
}

/**
 * Whether an attribution ("On … Ann <ann@example.com> wrote:") ends with this line, wrapped or not. `top` is the
 * beginning of its paragraph.
 */
function endsAttribution(lines: readonly string[], end: number, top: number): boolean {
  const last = bothEnds(lines[end] ?? "").toLowerCase();
  const colon = /[:：]$/.test(last);
  if (!colon && !WROTE_AT_END.test(last)) return false;
  for (let start = end, joined = ""; start >= top && start > end - MAX_ATTRIBUTION_LINES; start -= 1) {
    joined = `${bothEnds(lines[start] ?? "").toLowerCase()} ${joined}`.trim();
    if (colon ? isAttribution(joined) : isDated(joined)) return true;
  }
  const opening = lines
    .slice(top, Math.min(top + 2, end))
    .map(bothEnds)
    .join(" ")
    .toLowerCase();
  return colon && DATE_OR_TIME.test(opening) && WROTE.test(opening);
}

/** Without a colon behind it the word that says "wrote" is one like others. */
function isDated(text: string): boolean {
  return TWO_OF_THEM.test(text) || (DATE_OR_TIME.test(text) && MAIL_ADDRESS.test(text));
}

function isAttribution(text: string): boolean {
  if (WROTE_LAST.test(text) || endsInAddress(text)) return true;
  return DATE_OR_TIME.test(text) && (MAIL_ADDRESS.test(text) || WROTE.test(text));
}

/** `<ann@example.com>:` */
function endsInAddress(text: string): boolean {
  const address = text.slice(text.lastIndexOf("<"));
  return address.includes("@") && /> ?[:：]$/.test(address);
}

/**
 * An attribution repeats a name that its bearer chose, as long as they like and wrapped where they like, so
 * nothing of the paragraph it is in counts as the sender's own.
 */
function paragraphTop(lines: readonly string[], at: number, from: number): number {
  let top = at;
  while (top > from && (lines[top - 1] ?? "").trim() !== "") top -= 1;
  return top;
}

/** A quote whose attribution is in no known language still has a paragraph with an address or a date above it. */
function attributionAbove(lines: readonly string[], quote: number, from: number): number {
  let above = quote - 1;
  while (above >= from && (lines[above] ?? "").trim() === "") above -= 1;
  if (above < from || quote - above > MAX_ATTRIBUTION_LINES) return quote;
  const top = paragraphTop(lines, above, from);
  const text = lines
    .slice(top, above + 1)
    .join(" ")
    .trim()
    .toLowerCase();
  return isAttributionAbove(text, quote - above === 1) ? top : quote;
}

/** The whole paragraph counts: a long name in it puts any distance between the date and the quote. */
function isAttributionAbove(text: string, touchesQuote: boolean): boolean {
  if (MAIL_ADDRESS.test(text) || WROTE.test(text) || SAID.test(text)) return true;
  return (touchesQuote || /[:：]$/.test(text) ? DATE_OR_TIME : TWO_OF_THEM).test(text);
}
