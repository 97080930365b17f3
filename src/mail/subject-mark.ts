import { stripHiddenCharacters } from "./hidden-characters.ts";

/**
 * What mail programs put before the subject of a mail that is answered or passed on, by language. In a subject that is
 * new one of them costs its author the words `@target`; one that is missing here would let a stranger's subject count.
 */
const MARKS = [
  // English, and what programs of all languages use.
  "re fw fwd reply forward forwarded forward_of forwarded_message rsp resp",
  // German, Dutch, Afrikaans, Frisian.
  "aw wg antw antwort weitergeleitet weiterleitung antwoord doorst doorgestuurd betr",
  // The North.
  "sv svar vs vb vidarebefordrat videresendt vl vast vastaus välitetty fs framsent",
  // French, Italian, Spanish, Catalan, Galician, Portuguese, Romanian.
  "ré rép réf réponse tr transféré r rif ris i inoltra inoltrato rv res resp rta rpta reenv reenviado reenviada reenvío reenviament enc encaminhada encaminhado resposta respuesta risposta răsp răspuns redirecționat",
  // Polish, Czech, Slovak, Slovene, Croatian, Serbian.
  "odp pd przek przekazano odpowiedź odpověď odpoveď přep přeposláno předáno presl preposlané odg odgovor posr posredovano prosl proslijeđeno proslđ prosleđeno naprej",
  // Hungarian, Estonian, Latvian, Lithuanian, Albanian.
  "vá válasz továbbítva továbbítás tov edasi vastus atb atbilde pārsūt pārsūtīts ats atsakymas persiųsta pers përgj",
  // Turkish, Azerbaijani, Welsh, Irish, Icelandic, Indonesian, Malay, Vietnamese.
  "ynt yanıt ilt iletilen cvp cavab yml ymlaen bls balas balasan trs terusan diteruskan tl trả_lời chuyển_tiếp",
  // Greek.
  "απ απαντ απάντηση πρθ σχετ προωθ προώθηση",
  // Russian, Ukrainian, Bulgarian, Serbian, Macedonian.
  "отв ответ на пер перес пересл переслано переслать пересылка відп відповідь пересилання отг отговор отн препр препратено одг одговор прослед проследено прослеђено",
  // Hebrew, Arabic, Persian, Urdu.
  "השב תשובה תגובה הועבר העברה رد الرد إعادة_توجيه إعادة تحويل محول پاسخ بازارسال ارسال جواب",
  // Chinese, Japanese, Korean, Thai, Hindi.
  "回复 回覆 回復 答复 答覆 转发 轉發 轉寄 轉寄信件 转寄 返信 返 転送 답장 회신 전달 전송 ตอบกลับ ตอบ ส่งต่อ उत्तर प्रतिउत्तर अग्रेषित",
];

/** Letters that look like Latin ones, each before its likeness. */
const LIKE_LATIN = "аaвbгrеeѕsіiјjкkмmнhоoрpсcтtуyхxһhԁdԛqԝwѡwғfϝfαaβbεeηnιiκkμuνvοoρpτtυuχxωwɑaɡgıiʀrꭱrꮃw";
const LIKENESS = new Map(
  Array.from(LIKE_LATIN.matchAll(/(.)(.)/gu), ([, one = "", other = ""]) => [one, other]),
);

const KNOWN = new Set(
  MARKS.flatMap((line) => line.split(" ")).map((mark) => plain(mark.replaceAll("_", " "))),
);

/** Labels that may stand before a mark: "[EXT] Desk: Re: …". */
const MAX_LABELS = 6;
const MAX_LABEL_CHARS = 60;
const MAX_SUBJECT_CHARS = 600;
/** Colons and their likenesses, and the ends of brackets. */
const LABEL_END = /[:;\u02d0\u02f8\u0589\u05c3\u16ec\u1803\u1809\u205a\u2236\ua789|\])}>*】」』〉》〕]/u;
/** "Re[2]", "RE(3)", "Re^4", "AW 5". */
const COUNTER = /[\s.([{^*-]*\d{0,4}$/;
const NO_WORD = /^[^\p{L}\p{N}]+/u;
/** Unix programs mark what they pass on behind its subject. */
const MARK_AT_END = /[([]\s?fwd\s?[)\]]\s?$/;

/** Whether a subject begins with what mail programs of any language put there when a mail is answered or passed on. */
export function hasReplyMark(subject: string): boolean {
  let rest = plain(stripHiddenCharacters(subject).text.slice(0, MAX_SUBJECT_CHARS));
  if (MARK_AT_END.test(rest)) return true;
  for (let labels = 0; labels < MAX_LABELS; labels += 1) {
    rest = rest.replace(NO_WORD, "");
    const end = rest.slice(0, MAX_LABEL_CHARS).search(LABEL_END);
    if (end <= 0) return false;
    if (isMark(rest.slice(0, end))) return true;
    rest = rest.slice(end + 1);
  }
  return false;
}

function isMark(label: string): boolean {
  return KNOWN.has(label.trim()) || KNOWN.has(label.replace(COUNTER, "").trim());
}

/** In small letters without accents, and in the Latin ones that others look like. */
function plain(text: string): string {
  return text
    .normalize("NFKD")
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[^\0-~]/gu, (char) => LIKENESS.get(char) ?? char);
}
