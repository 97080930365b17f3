import { type Attribution, attributionAbove, attributionAt, endsInVerb } from "./attribution.ts";
import { headerBlockTop, opensHeaderBlock, opensNotesHead } from "./header-lines.ts";
import { bothEnds, plain, tidied } from "./marker-lines.ts";

/**
 * The mark of a quoted line: ">", a bar or a colon, and what mail programs put before the first: initials or a name
 * ("JH> ", "Tim>"), or another mark ("&> "). An arrow is none.
 */
const QUOTED =
  /^([\p{L}\p{N}][\p{L}\p{M}\p{N}.'_-]{0,19}(?=>+(\s|$))|[^\p{L}\p{N}\s<=-]{1,2} ?(?=>))?>|^[|¦│┃]|^[:»›](\s|$)/u;
const SIGNATURE_DASHES = /^(--|—)$/;
/** A line of one mark, whatever the mark; three dots and the ticks around a program are none. */
const RULE = /^(([^\p{L}\p{N}\s.`])(\s?\2){2,}|[—–─_]{2,})$/u;
/** Three marks part the sections of a text; where the mail answers none they are no more than that. */
const SECTION_RULE = /^([^\p{L}\p{N}\s_])(\s?\1){2}$/u;
/** "-----Original Message-----" in whatever language. */
const TITLED_RULE = /^[-_=*~+#─━—–―−]{3,} ?[^-_=*~+#─━—–―−].*[^-_=*~+#─━—–―−] ?[-_=*~+#─━—–―−]{3,}$/u;
const FORWARD_TITLE =
  /^(begin (of )?forwarded|original message$|forwarded message|original mail|anfang der weitergeleiteten|ursprüngliche nachricht|weitergeleitete nachricht|début du message|message (d'origine|transféré|original)|inicio del mensaje|mensaje (original|reenviado)|inizio (del )?messaggio|messaggio (originale|inoltrato)|begin doorgestuurd|oorspronkelijk bericht|doorgestuurd bericht|início da mensagem|mensagem (original|encaminhada)|vidarebefordrat|ursprungligt meddelande|videresendt|opprinnelig melding|start på videresendt|oprindelig (besked|meddelelse)|välitetty viesti|alkuperäinen viesti|początek przek|wiadomość (oryginalna|przekazana)|oryginalna wiadomość|začátek přepos|původní zpráva|přeposlaná zpráva|начало (переадресованного|пересылаемого)|пересылаемое сообщение|исходное сообщение|転送されたメッセージ|元のメッセージ|以下は転送|開始轉寄|以下是轉寄|下面是被转发|开始转发|原始邮件|原始郵件|转发的邮件|전달된 메시지|원본 메시지)/;
const SENT_FROM =
  /^(sent (from|via|with|using) |get outlook for |get bluemail|von meinem .*gesendet|gesendet (von|mit|über|aus) |diese nachricht wurde von mein|envoyé (de|depuis|à partir|avec) |(obtenir|télécharger|obtener|obter|scarica|hämta|hent|hanki|pobierz|скачать) outlook|outlook (voor|für|pour|para|per) |enviado (desde|do|de|com|a partir) |inviato (da|dal|con) |(verzonden|verstuurd) (vanaf|met|via) |skickat från |sendt fra |lähetetty |wysłan[eo] z |odesláno z|odoslané z|отправлено (с|из) |надіслано з |trimis de pe |elküldve |発自|发自我的|發自我的|寄自我的|[从從]我的.*[发發傳]|나의 .*에서 보)|から送信$/;

/** `line` is the first one that is not the sender's own. */
export type Marker =
  | { kind: "signature"; line: number }
  /** The first line that is marked, or would be, and whether a name may stand between. */
  | { kind: "quote"; line: number; quote: number; attributed: boolean }
  /** What others wrote, without a mark on each line: nothing tells its end. */
  | { kind: "forward"; line: number };

/** Whether a line without blanks at its ends is marked as quoted. */
export function isQuoted(line: string): boolean {
  return QUOTED.test(plain(line));
}

/**
 * The first quote, forward or signature from line `from` on, of lines without blanks at their ends. In doubt a line is a
 * marker: text above one may be obeyed. `fresh`: the mail answers and passes on none, so that fewer lines are in doubt.
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

/** `top` is where the paragraph of this line begins. */
function markerAt(
  lines: readonly string[],
  line: number,
  { from, top, fresh }: { from: number; top: number; fresh: boolean },
): Marker | null {
  const text = plain(lines[line] ?? "");
  if (SIGNATURE_DASHES.test(text) || SENT_FROM.test(text)) return { kind: "signature", line };
  if (QUOTED.test(text)) return quoteAt(lines, line, from);
  if (isTitle(text, fresh) || isTitle(tidied(bothEnds(lines[line] ?? "")), fresh))
    return { kind: "forward", line };
  if (opensNotesHead(lines, line)) return { kind: "forward", line: top };
  if (opensHeaderBlock(lines, line, fresh))
    return { kind: "forward", line: headerBlockTop(lines, top, line) };
  const attribution = attributionAt(lines, line, { top, fresh });
  return attribution && quoteBelow(lines, attribution);
}

/** Some break an attribution so that its end looks like a marked line: "> wrote:". */
function quoteAt(lines: readonly string[], line: number, from: number): Marker {
  const start = attributionAbove(lines, line, from);
  if (start < line && endsInVerb(plain(lines[line] ?? "")))
    return quoteBelow(lines, { start, end: line + 1 });
  return { kind: "quote", line: start, quote: line, attributed: start < line };
}

function quoteBelow(lines: readonly string[], { start, end }: Attribution): Marker {
  const quote = (lines[end] ?? "") === "" ? end + 1 : end;
  return { kind: "quote", line: start, quote, attributed: true };
}

function isTitle(text: string, fresh: boolean): boolean {
  if (fresh && SECTION_RULE.test(text)) return false;
  return RULE.test(text) || TITLED_RULE.test(text) || FORWARD_TITLE.test(text);
}
