/** Words with which people begin a mail, in the languages that mail programs know. */
const HELLO =
  /^[ \t]*(?:hello|hi|hey|dear|greetings|good (?:morning|afternoon|evening|day)|hallo|liebe[rs]?|guten (?:tag|morgen|abend)|moin|servus|bonjour|bonsoir|salut|ch[eè]re?|hola|estimad[oa]|querid[oa]|buen[oa]s (?:d[ií]as|tardes|noches)|ciao|buongiorno|buonasera|gentile|car[oa]|ol[aá]|oi|prezad[oa]|bom dia|boa tarde|beste|geachte|dag|goedemorgen|hej|hei|k[aä]ra|kj[aæ]re|cześć|dzień dobry|witam|ahoj|dobrý den|привет|здравствуйте|уважаем(?:ый|ая)|добрый день|merhaba|sayın)(?![\p{L}\p{N}])/iu;
/** The rest of a greeting: a name. Text behind a comma is not a greeting any more. */
const NAME = /^[^,;!?\n]{0,80}[,;!?.:]*\s*$/u;
/** Words with a meaning in this product: an address, a target, a context, a macro, a flag. */
const MEANS = /\S{0,300}[@+$#]\S{0,300}|(?:--|[–—])\p{L}\S{0,300}/gu;

/**
 * Returns whether the rest of a line names somebody. Behind a comma, which some languages write here, at most two words
 * may follow.
 */
function namesSomebody(behind: string): boolean {
  const called = behind.replace(/^[ \t]*,/, "");
  return called === behind
    ? NAME.test(behind)
    : called.length <= 300 && called.trim().split(/\s+/).length < 3;
}

/** Returns the first line of a text if it is a greeting: where it begins, and the line. */
function greetingIn(text: string): { start: number; line: string } | null {
  const start = text.search(/\S/);
  if (start === -1) return null;
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end === -1 ? undefined : end);
  const hello = HELLO.exec(line.slice(0, 200))?.[0];
  return hello !== undefined && namesSomebody(line.slice(hello.length)) ? { start, line } : null;
}

/**
 * Returns the text of a reply with blanks in place of a name in the greeting that could be an address or a command:
 * some mail programs write a greeting by themselves, with the name of the person replied to.
 */
export function withoutGreeted(text: string): string {
  const { start, line } = greetingIn(text) ?? { start: 0, line: "" };
  const greeting = line.replaceAll(MEANS, (word) => " ".repeat(word.length));
  return text.slice(0, start) + greeting + text.slice(start + line.length);
}

/**
 * Returns the text below a greeting if that begins with a target or a macro, which count only at the beginning;
 * otherwise the whole text. `apart`: an empty line may be between, below which a reply may have words of others.
 */
export function belowGreeting(text: string, { apart }: { apart: boolean }): string {
  const greeting = greetingIn(text);
  if (greeting === null) return text;
  const below = text.slice(greeting.start + greeting.line.length);
  const names = (apart ? /^\s*[@$]/ : /^\n[ \t]*[@$]/).test(below);
  return names && greeting.line.search(MEANS) === -1 ? below : text;
}
