/** Sites of virus scanners and mail gateways, which these write below a mail. */
export const SCANNERS_PAGE =
  /(?:https?:\/\/)?www\.(?:avast|avg|norton|eset|mimecast|symanteccloud|messagelabs)\.com(?=[/?\s>)]|$)[^\s<>()]*/g;
/** A line with only such a URL, or one word before it: "Virus-free. www.avast.com". */
const PAGE_LINE =
  /^(?:[\p{L} -]{1,30}[.。]? ?)?<?(?:https?:\/\/)?www\.(?:avast|avg|norton)\.com(?:[/?][^\s<>]{0,500})?>?(?: ?<[^\s<>]{1,500}>)?$/u;
/** Beginnings of scanners' sentences, by language. */
const OPENING =
  /^(?:this (?:e-?mail|message)(?: and any attachments?)? (?:has been|was|is) (?:scanned|checked|filtered|virus)|the message was checked |no virus(?:es)? (?:was |were )?found in this |information from eset|diese (?:e-?mail|nachricht) wurde |l'absence de virus dans ce |cet? (?:e-?mail|courriel|message) a été |el software de antivirus |este (?:correo|mensaje|e-?mail) |quest[ao] (?:e-?mail|messaggio) è stat|deze e-?mail is |de[nt]{1,2}[ae]? (?:e-?post|e-?mail|meddelande|besked)|ta wiadomość |tento e-?mail |это сообщение |этот e-?mail |このメールは)/;
/** Words that every such sentence contains. */
const SUBJECT =
  /virus|viren|malware|mailscanner|вирус|ウイルス|ウィルス|eset|security|mimecast|messagelabs|barracuda|kaspersky|sophos|proofpoint|trend micro/;
/** Beginnings of notices that companies put below each mail, behind a separator line. */
const NOTICE =
  /^(?:confidentiality (?:notice|note)|disclaimer|legal (?:notice|disclaimer)|vertraulichkeitshinweis|haftungsausschluss|rechtlicher hinweis|avis de confidentialité|aviso (?:legal|de confidencialidad)|avviso di riservatezza|this (?:e-?mail|message)(?: and any (?:attachments?|files))? (?:is|are|contains?|may contain) )/;
const RULE_SIGNS = /^[-_=*~#─━—–\s]+/;
const MAX_NOTE_CHARS = 600;

/**
 * Returns whether a note of a virus scanner or gateway begins with a line (in lower case). `below` is the next line
 * that is not empty; undefined if there is none, as below a line that ends a note.
 */
export function opensScanNote(line: string, below: string | undefined): boolean {
  if (isNote(line)) return true;
  const is_rule = line.length > 1 && line.replace(RULE_SIGNS, "") === "";
  return is_rule && (below === undefined || isNote(below) || NOTICE.test(below));
}

/** Returns whether a line (in lower case) is a virus scanner's. */
export function isNote(line: string): boolean {
  const text = line.slice(0, MAX_NOTE_CHARS).replace(RULE_SIGNS, "");
  return PAGE_LINE.test(text) || (OPENING.test(text) && SUBJECT.test(text));
}
