/** Words with which people begin a mail, in the languages that mail programs know. */
const HELLO =
  /^[ \t]*(?:hello|hi|hey|dear|greetings|good (?:morning|afternoon|evening|day)|hallo|liebe[rs]?|guten (?:tag|morgen|abend)|moin|servus|bonjour|bonsoir|salut|ch[eè]re?|hola|estimad[oa]|querid[oa]|buen[oa]s (?:d[ií]as|tardes|noches)|ciao|buongiorno|buonasera|gentile|car[oa]|ol[aá]|oi|prezad[oa]|bom dia|boa tarde|beste|geachte|dag|goedemorgen|hej|hei|k[aä]ra|kj[aæ]re|cześć|dzień dobry|witam|ahoj|dobrý den|привет|здравствуйте|уважаем(?:ый|ая)|добрый день|merhaba|sayın)(?![\p{L}\p{N}])/iu;
/** Nobody greets by more; behind a comma something else is said. */
const NAME = /^[^,;!?\n]{0,80}[,;!?.:]*\s*$/u;
/** What would mean something in a name: an address, a target, a context, a macro, a flag. */
const MEANS = /\S{0,300}[@+$#]\S{0,300}|(?:--|[–—])\p{L}\S{0,300}/gu;

/** Behind a comma stand two words at most, as in languages that write one there. */
function namesSomebody(behind: string): boolean {
  const called = behind.replace(/^[ \t]*,/, "");
  return called === behind
    ? NAME.test(behind)
    : called.length <= 300 && called.trim().split(/\s+/).length < 3;
}

/**
 * Returns the words of a mail that answers with blanks in place of what its first line greets, where that could be an
 * address or a command: some mail programs write a greeting by themselves, with the name of whoever is answered.
 */
export function withoutGreeted(text: string): string {
  const first = text.search(/\S/);
  if (first === -1) return text;
  const end = text.indexOf("\n", first);
  const line = text.slice(first, end === -1 ? undefined : end);
  const hello = HELLO.exec(line.slice(0, 200))?.[0];
  if (hello === undefined || !namesSomebody(line.slice(hello.length))) return text;
  const greeting = line.replaceAll(MEANS, (word) => " ".repeat(word.length));
  return text.slice(0, first) + greeting + text.slice(first + line.length);
}
