/** Words with which people begin a mail, in the languages that mail programs know. */
const HELLO =
  /^[ \t]*(?:hello|hi|hey|dear|hallo|liebe[rs]?|guten (?:tag|morgen|abend)|moin|servus|bonjour|bonsoir|salut|ch[eè]re?|hola|estimad[oa]|querid[oa]|buen[oa]s (?:d[ií]as|tardes|noches)|ciao|buongiorno|buonasera|gentile|car[oa]|ol[aá]|oi|prezad[oa]|bom dia|boa tarde|beste|geachte|dag|goedemorgen|hej|hei|k[aä]ra|kj[aæ]re|cześć|dzień dobry|witam|ahoj|dobrý den|привет|здравствуйте|уважаем(?:ый|ая)|добрый день|merhaba|sayın)(?![\p{L}\p{N}])/iu;
/** An address behind a name at most, at the end of its line. */
const ADDRESSED = /^[\p{L}\p{M}\s.,'"„“”-]{0,40}?\S{1,300}@\S{1,300}\s*$/u;
const MAX_CHARS = 300;

/**
 * Returns the words of a mail that answers with blanks in place of the address that its first line greets: some mail
 * programs write a greeting by themselves, with the name of whoever is answered, who may be called like an address.
 */
export function withoutGreeted(text: string): string {
  const first = text.search(/\S/);
  const end = text.indexOf("\n", first);
  const line = text.slice(first, end === -1 ? undefined : end);
  const hello = line.length > MAX_CHARS ? null : HELLO.exec(line);
  if (first === -1 || hello === null || !ADDRESSED.test(line.slice(hello[0].length))) return text;
  const greeting = line.replaceAll(/\S{1,300}@\S{1,300}/g, (address) => " ".repeat(address.length));
  return text.slice(0, first) + greeting + text.slice(first + line.length);
}
