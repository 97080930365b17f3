import { withoutAsides, withoutTemplateMarks } from "./asides.ts";
import { normalForm } from "../../lib/normal-form.ts";
import { YES } from "../own-words/consent.ts";
import { asRead } from "./as-read.ts";
import { type Going, type Objection, tooMuch } from "./guard.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { togetherIn } from "./packed/together.ts";
import { mayBeYesOf } from "./consent-numbers.ts";
import { readingsOfHtml } from "./shown-words.ts";

/** An encoded character, and a line that goes on, in quoted-printable (RFC 2045 §6.7). */
const QUOTED_PRINTABLE = /=(?:\r?\n|([0-9a-f]{2}))/gi;
/** An element without others in it, whose words some program may leave out. */
const ELEMENT = /<[a-z][^<>]*>[^<>]*<\/[a-z][^<>]*>/gi;
/** How deep such elements may be in each other. */
const DEPTH = 3;
/** A value in base64 that is too short to be told from a word. */
const SHORT_BASE64 = /^[A-Za-z0-9+/_-]{2,12}={0,2}$/;
/** The marks of markup, which a program takes out, and quotation marks. */
const MARKS = /[^\p{L}\p{M}\p{N}\s.,:;/?!%\u3002\uff01\uff0e-]/gu;
/** What may be one of the words and its number, with some blanks and marks. */
const MAX_LINE_CHARS = 60;
/** Six digits behind one of the words, as `consentIn` reads them, and blanks that a program may leave out. */
const WITH_NUMBER = /^(\p{L}{1,5})[ ,:]{0,2}(?:\d ?){6}[.!\u3002\uff01\uff0e]?$/u;

/** The same within a line, which a program may break there. */
const WITHIN_LINE = /(?<![\p{L}\p{M}\p{N}])((?:\p{L}\p{M}?){1,5})[ ,:]{0,2}(\d{3} ?\d{3})(?!\d)/gu;
/** From more of these the number of a request could be found out, by which of them may not be written. */
const MAX_WITHIN_LINES = 5;

/**
 * Returns the objection to words in a call that would be the owner's yes to one that waits, should they come back in a mail: one of
 * the words of a consent with a number, as they stand there or as they are shown once they were mailed. Where they stand
 * alone in a line it does not matter which number it is: nobody is to learn by this which one it would have to be.
 */
export async function objectionToYes({
  tool: { name, foreign, read_only },
  args,
  numbers,
}: Pick<Going, "args" | "numbers"> & {
  tool: Pick<Going["tool"], "name" | "foreign" | "read_only">;
}): Promise<Objection | null> {
  if (numbers.length === 0 || !foreign || read_only) return null;
  const readings = await readingsOf(args);
  if (readings === TOO_MUCH) return tooMuch(name);
  const all = [
    ...readings.flatMap(({ key, forms }) => (isYes(key) ? forms.map((form) => `${key} ${form}`) : forms)),
    ...togetherIn(args).map(({ text }) => asRead(text)),
  ];
  const within = new Set(all.flatMap(numbersWithin));
  // A name is put nowhere but before its value, and `ano` or `si` may be one.
  const values = readings.flatMap(({ key, forms }) => (key === "" ? [] : [forms]));
  const is_yes =
    all.some(isYesInLine) ||
    within.size > MAX_WITHIN_LINES ||
    numbers.some((number) => within.has(number)) ||
    mayBeYesOf(values, numbers);
  return is_yes ? yesWritten(name) : null;
}

interface Reading {
  key: string;
  /** A value as it is read by programs that take it for plain text, HTML, Markdown or a template. */
  forms: string[];
}

async function readingsOf(args: Record<string, unknown>): Promise<Reading[] | typeof TOO_MUCH> {
  // Its parser would stay in memory from the start.
  const { markdownAsHtml } = await import("../../mail/writing/markdown.ts");
  const readings: Reading[] = [];
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH) return TOO_MUCH;
    const forms: string[] = [];
    for (const form of formsOf(String(given.value))) {
      forms.push(form, withoutAsides(form), ...(await readingsOfHtml(form)));
      forms.push(...(await readingsOfHtml(markdownAsHtml(form))));
    }
    readings.push({ key: given.key, forms: [...new Set(forms.map(asRead))] });
  }
  return readings;
}

/** The numbers in a text that stand behind one of the words. */
function numbersWithin(text: string): string[] {
  return Array.from(plainLine(text).matchAll(WITHIN_LINE), ([, word = "", number = ""]) =>
    isYes(word) ? [number.replace(" ", "")] : [],
  ).flat();
}

function isYes(word: string): boolean {
  return YES.includes(normalForm("NFKC", word).toLowerCase());
}

function yesWritten(name: string): Objection {
  const reason = `${name} was to write a word such as \`yes\` with six digits, or with numbers that they could be made of, and a call waits for your yes: should the text come back here in your name with the number of that call, it would be made. Decide about it first, or write one without the other.`;
  return { reason, lacks: null };
}

/** A text as programs decode it, and without elements that they may hide. */
function formsOf(text: string): string[] {
  const forms = [text, asRead(text)];
  const encoded = text.replaceAll(QUOTED_PRINTABLE, (_whole, hex?: string) =>
    hex === undefined ? "" : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  forms.push(encoded);
  if (SHORT_BASE64.test(text)) forms.push(Buffer.from(text, "base64").toString());
  let shown = text;
  for (let depth = 0; depth < DEPTH; depth += 1) forms.push((shown = shown.replaceAll(ELEMENT, "")));
  return [...new Set([...forms, ...withoutTemplateMarks(text)])];
}

/** Whether some line of a text is no more than a yes with a number, from left to right or from right to left. */
function isYesInLine(text: string): boolean {
  return text.split(/[\r\n\u2028\u2029]/).some((line) => {
    const plain = plainLine(line);
    if (plain.length > MAX_LINE_CHARS) return false;
    const turned = Array.from(plain).toReversed().join("");
    return [plain, turned].some((one) => {
      const [, word = ""] = WITH_NUMBER.exec(normalForm("NFKC", one)) ?? [];
      return isYes(word);
    });
  });
}

function plainLine(line: string): string {
  return line.replaceAll(MARKS, "").replaceAll(/\s+/g, " ").trim();
}
