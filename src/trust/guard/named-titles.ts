import { isInsideAddress } from "./inside-address.ts";
import { isQuoted } from "./quoted.ts";
import { standsBetween } from "./stands-between.ts";
import { bareWord, wordsBefore, wordSet } from "./words.ts";

/** The words of people with authority. */
export interface Written {
  /** The words for this very run: the instruction, and a subject that is a part of it. */
  instruction: string;
  /** The instruction and the words beside it in every run, such as contexts. */
  trusted_text: string;
}

/**
 * Whether a text names something by its title. Whoever shares something chooses what it is called, and would call it by
 * common words: a title has to stand in quotation marks, or to be written as it is, with its capitals, in a place where
 * the instruction says where something goes. `others` are all other titles that are known.
 */
export function isTitleNamed(title: string, written: Written, others: string[] = []): boolean {
  if (isTitleQuoted(title, written)) return true;
  return isPointedAtAlone(plain(title), plain(written.instruction.slice(0, MAX_READ_CHARS)), [
    ...new Set(others.map(plain)),
  ]);
}

export function isTitleQuoted(title: string, { trusted_text }: Written): boolean {
  const wanted = plain(title).toLowerCase();
  const text = plain(trusted_text).toLowerCase();
  const quoted = (at: number): boolean =>
    isQuoted(text, at, at + wanted.length) && !isInsideAddress(text, at);
  return standsBetween(text, wanted, { before: /[.@-]/, after: /^/, accepts: quoted });
}

/** Whether two titles are the same to people. */
export function sameName(one: string | null, other: string): boolean {
  return one !== null && plain(one).toLowerCase() === plain(other).toLowerCase();
}

/** Whether one of two titles stands in the other. */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [plain(one), plain(other)];
  return contains(a, b) || contains(b, a);
}

/** Whether a title has these words in it, in whatever letters. */
export function hasWords(title: string, words: string): boolean {
  return plain(title).toLowerCase().includes(plain(words).toLowerCase());
}

/**
 * More than 30 marks on one letter. No word has them (UAX #15, stream-safe text), and to put them in order takes the
 * square of their number.
 */
const MANY_MARKS = /(\p{M}{31,})/u;

function plain(text: string): string {
  const parts = text.trim().split(MANY_MARKS);
  return parts.map((part, index) => (index % 2 === 0 ? part.normalize("NFC") : part)).join("");
}

function contains(long: string, short: string): boolean {
  const wanted = short.toLowerCase();
  return long.length > short.length && standsBetween(long.toLowerCase(), wanted, WHOLE);
}

const PART = String.raw`[\p{L}\p{N}\p{M}_]`;
const NOT_BEFORE = new RegExp(String.raw`(?:${PART}|[.@-])$`, "u");
const NOT_GOING_ON = new RegExp(String.raw`^(?!${PART}|[.-]${PART})`, "u");
const WHOLE = { before: new RegExp(PART, "u"), after: NOT_GOING_ON };
const MAX_BEFORE_CHARS = 200;
const MAX_BEHIND_CHARS = 40;
/** Characters of an instruction in which a title can be named; the words behind a title are read beyond them. */
const MAX_POINTING_CHARS = 20_000;
const MAX_READ_CHARS = MAX_POINTING_CHARS + 5_000;
/** Occurrences of a title that are looked at; a title that stands there more often is taken for named. */
const MAX_POINTED = 200;

// The words below are of the languages that most instructions are written in.

/** A noun behind a title, also with a hyphen: `die Wochenplan-Seite`. */
const NOUN_BEHIND =
  /^[\s-]{1,3}(?:page|subpage|list|database|board|table|doc|document|wiki|seite|unterseite|liste|datenbank|tabelle|dokument|pagina|lijst|tabel)(?![\p{L}\p{N}\p{M}_])/iu;
const NOUNS = wordSet(
  "page pages subpage list lists database databases board table doc document wiki seite unterseite liste datenbank tabelle dokument tableau données fiche página lista datos tabla tablero documento dados tabela quadro pagina bacheca tabella lijst tabel bord",
);
const CALLED = wordSet(
  "called named titled entitled namens genannt appelée appelé intitulée intitulé nommée nommé llamada llamado titulada titulado chiamata chiamato intitolata intitolato chamada chamado intitulada intitulado genaamd getiteld",
);
/** Prepositions that say where something goes. */
const TOWARDS = wordSet(
  "to into onto below beneath in unter auf dans sous sur à a en bajo sobre sotto em sob naar aan op onder",
);
/** Prepositions that, with an English article, more often tell where something is than where it goes. */
const WITHIN = wordSet("in on at under");
const ENGLISH = wordSet("the my our your his her their");
const THE = wordSet(
  "the my our your his her their den die das meinen meine mein unseren unsere unser deine deinen le la les l' mon ma mes notre nos ton ta votre vos el los las mi mis nuestro nuestra tu su lo il gli i mio mia nostro nostra meu minha nosso nossa de het mijn onze ons jouw",
);
/** Words that are a preposition and an article in one. */
const TOWARDS_THE = wordSet(
  "ins aufs au aux al allo alla all' nel nello nella nell' sul sullo sulla sull' ao no na nos nas",
);
/** Verbs whose object goes where the next words say. */
const WRITING = wordSet(
  "add append save put write note keep store file record log post enter copy move insert",
);
/** Verbs of writing that have no person for their object. */
const FILING = wordSet("add append save file copy move insert");
const CHANGING = wordSet("update extend amend complete edit");
const ENDS_OF = wordSet("end top bottom beginning start");
/** The end of a title: no word follows that could belong to it. */
const ENDS =
  /^(?:['’]s)?(?:$|\s{0,5}\n|[.,;:!?)](?:\s|$)|\s{1,5}(?:[-–—]\s|(?:please|bitte|merci)(?!\p{L})))/iu;

/** Whether a text points at a title and at no other one that could be meant as well. */
function isPointedAtAlone(title: string, text: string, others: string[]): boolean {
  if (!isWrittenAsTitle(title)) return false;
  const longer = others.filter((other) => contains(other, title));
  const isOne = (at: number): boolean =>
    at < MAX_POINTING_CHARS &&
    isOneAt(title, text, at) &&
    !isInsideAddress(text, at) &&
    !longer.some((other) => isPartOf(other, title, { text, at }));
  return pointsAt(text, title, isOne, false) && !others.some((other) => isPaddedOut(title, other, text));
}

/** Whether an accepted occurrence of a title stands in a text; `many` is the answer where there are too many to look at. */
function pointsAt(text: string, title: string, accepts: (at: number) => boolean, many: boolean): boolean {
  return standsBetween(text, title, {
    before: /[.@-]/,
    after: /^/,
    accepts,
    most: { count: MAX_POINTED, stands: many },
  });
}

/** Whether a title begins with a capital: without one it is written like any other words. */
function isWrittenAsTitle(title: string): boolean {
  return /^[^\s\p{Lu}\p{Lt}]{0,100}[\p{Lu}\p{Lt}]/u.test(title);
}

/** Whether a title is another one with common words added, which an instruction that names the other has there anyway. */
function isPaddedOut(title: string, other: string, text: string): boolean {
  if (!contains(title, other) || !isWrittenAsTitle(other)) return false;
  const at = title.toLowerCase().indexOf(other.toLowerCase());
  const padding = title.slice(0, at) + title.slice(at + other.length);
  if (/[\p{Lu}\p{Lt}\p{N}]/u.test(padding)) return false;
  return pointsAt(text, other, (place) => isOneAt(other, text, place), true);
}

/** Whether an occurrence of a title in a text is a part of a longer title there. */
function isPartOf(long: string, title: string, { text, at }: { text: string; at: number }): boolean {
  const [lower, wanted] = [long.toLowerCase(), title.toLowerCase()];
  for (let from = lower.indexOf(wanted); from !== -1; from = lower.indexOf(wanted, from + 1))
    if (
      text
        .slice(Math.max(0, at - from))
        .slice(0, long.length)
        .toLowerCase() === lower
    )
      return true;
  return false;
}

function isOneAt(title: string, text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
  const after = text.slice(at + title.length, at + title.length + MAX_BEHIND_CHARS);
  const noun_behind = NOUN_BEHIND.test(after);
  if (NOT_BEFORE.test(before) || !(noun_behind || NOT_GOING_ON.test(after))) return false;
  const words = wordsBefore(before.toLowerCase().replaceAll("’", "'"));
  const several = /\s/.test(title);
  if (noun_behind) return several ? !beginsSentence(title, before) : leadOf(words) === "the";
  return isBehindNoun(title, words, after) || (several && isLedTo(title, words, after));
}

/** Whether the only capital of a title may be that of a sentence, which may also begin behind a target or a flag. */
function beginsSentence(title: string, before: string): boolean {
  if (/\s\p{Lu}/u.test(title)) return false;
  const words = before.trimEnd();
  const last = words.slice(words.search(/(?<!\S)\S+$/));
  return before.slice(words.length).includes("\n") || last === "" || /^[@+#$*•>-]|[.!?:;…]$/.test(last);
}

/** Whether a noun stands before a title: `the page Weekly plan`, `a list called Weekly plan`. */
function isBehindNoun(title: string, words: string[], after: string): boolean {
  const [last = "", one = ""] = words.toReversed();
  if (CALLED.has(last)) return NOUNS.has(one);
  if (last.endsWith(":")) return NOUNS.has(last.slice(0, -1)) && ENDS.test(after);
  if (!NOUNS.has(last) || !(TOWARDS.has(one) || leadOf(words.slice(0, -1)) !== null)) return false;
  return ENDS.test(after) || (/\s/.test(title) && !isProper(title));
}

/** `to the Weekly plan`, `add it to Weekly plan`. */
function isLedTo(title: string, words: string[], after: string): boolean {
  const lead = leadOf(words);
  return lead === "the" || (lead === "name" && ENDS.test(after) && !isProper(title));
}

/** As people, towns and firms are written. */
function isProper(title: string): boolean {
  return title.split(/\s+/).every((word) => /^[\p{Lu}\p{Lt}\p{N}]/u.test(word));
}

/** How the last words say that something goes where the next ones tell: with an article or without; null if they do not. */
function leadOf(words: string[]): "the" | "name" | null {
  const last = words.at(-1) ?? "";
  if (TOWARDS_THE.has(last)) return "the";
  const english = ENGLISH.has(last) || /\p{L}'s$/u.test(last);
  if (!english && !THE.has(last)) return hasVerb(words, FILING) ? "name" : null;
  return isTowards(words.slice(0, -1), english) ? "the" : null;
}

function isTowards(words: string[], english: boolean): boolean {
  const [last = "", one = ""] = words.toReversed();
  if (english && WITHIN.has(last)) return hasVerb(words, WRITING);
  return TOWARDS.has(last) || CHANGING.has(bareWord(last)) || (last === "of" && ENDS_OF.has(one));
}

/** Whether a verb stands before the last word, which says where something goes, with no more than two words between. */
function hasVerb(words: string[], verbs: ReadonlySet<string>): boolean {
  const [last = "", ...before] = words.toReversed();
  const at = before.findIndex((word) => verbs.has(bareWord(word)));
  const between = before.slice(0, Math.max(0, at));
  return (
    (TOWARDS.has(last) || WITHIN.has(last)) &&
    at !== -1 &&
    at < 3 &&
    between.every((word) => !/[.,;:!?]$/.test(word))
  );
}
